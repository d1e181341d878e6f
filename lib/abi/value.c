/* SPDX-License-Identifier: Apache-2.0 */
/* Reading arguments. Contracts in value.h. */
#include "abi/value.h"

#include "base/check.h"

const struct andiron_value *value_get(const struct andiron_value *map, const char *name)
{
	struct str sought = str_of(name);

	check(map->kind == ANDIRON_VALUE_MAP);
	for (uint64_t i = 0; i < map->n_items; i++)
		if (str_eq(abi_str(map->keys[i]), sought))
			return map->items[i].kind == ANDIRON_VALUE_NULL ? NULL : &map->items[i];
	return NULL;
}

bool value_bool(const struct andiron_value *map, const char *name, bool absent)
{
	const struct andiron_value *v = value_get(map, name);

	check(!v || v->kind == ANDIRON_VALUE_BOOL);
	return v ? v->integer != 0 : absent;
}

int64_t value_int(const struct andiron_value *map, const char *name, int64_t absent)
{
	const struct andiron_value *v = value_get(map, name);

	check(!v || v->kind == ANDIRON_VALUE_INT);
	return v ? v->integer : absent;
}

double value_number(const struct andiron_value *map, const char *name, double absent)
{
	const struct andiron_value *v = value_get(map, name);

	check(!v || v->kind == ANDIRON_VALUE_FLOAT || v->kind == ANDIRON_VALUE_INT);
	if (!v)
		return absent;
	return v->kind == ANDIRON_VALUE_INT ? (double)v->integer : v->number;
}

struct str value_str(const struct andiron_value *map, const char *name, struct str absent)
{
	const struct andiron_value *v = value_get(map, name);

	check(!v || v->kind == ANDIRON_VALUE_STRING);
	return v ? abi_str(v->string) : absent;
}

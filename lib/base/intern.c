/* SPDX-License-Identifier: Apache-2.0 */
/* Interned strings. Contract in intern.h. */
#include "base/intern.h"

#include "base/check.h"
#include "base/hash.h"

void intern_free(struct intern *t)
{
	arena_free(&t->arena);
	index_free(&t->index);
	vec_free(&t->strings);
}

struct probe {
	const struct intern *table;
	struct str sought;
};

static bool same(const void *context, uint32_t position)
{
	const struct probe *probe = context;

	return str_eq(probe->table->strings.p[position], probe->sought);
}

uint32_t intern_add(struct intern *t, struct str s)
{
	struct probe probe = {t, s};
	uint64_t hash = hash_str(s);
	struct str copy;
	uint32_t id;

	if (s.n == 0)
		s = STR("");
	if (t->strings.n == 0 && !vec_push(&t->strings, STR("")))
		return INDEX_NONE;
	if (s.n == 0)
		return 0;
	id = index_find(&t->index, hash, same, &probe);
	if (id != INDEX_NONE)
		return id;
	if (t->strings.n >= INDEX_NONE || !vec_reserve(&t->strings, 1))
		return INDEX_NONE;
	copy = arena_str(&t->arena, s);
	if (!copy.p || index_add(&t->index, hash, (uint32_t)t->strings.n) < 0)
		return INDEX_NONE;
	check(t->strings.n > 0 && copy.n == s.n);
	t->strings.p[t->strings.n] = copy;
	return (uint32_t)t->strings.n++;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a component's arguments (andiron/value.h). The host has checked them against the option
 * table, so a getter for a name of another type is a bug, not an error: it is checked. */
#pragma once

#include "base/str.h"

#include <andiron/value.h>

static inline struct str abi_str(struct andiron_str s)
{
	return (struct str){s.ptr, s.len};
}

static inline struct andiron_str abi_str_of(struct str s)
{
	return (struct andiron_str){s.p, s.n};
}

/* The member of a MAP, NULL where it is absent or null. O(members). */
const struct andiron_value *value_get(const struct andiron_value *map, const char *name);

/* The same by type, with an answer for what is absent. Strings are borrowed like the value itself.
 * A duration is an int, in ns. */
bool value_bool(const struct andiron_value *map, const char *name, bool absent);
int64_t value_int(const struct andiron_value *map, const char *name, int64_t absent);
double value_number(const struct andiron_value *map, const char *name, double absent);
struct str value_str(const struct andiron_value *map, const char *name, struct str absent);

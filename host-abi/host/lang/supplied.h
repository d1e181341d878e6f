/* SPDX-License-Identifier: Apache-2.0 */
/* Values that running components have supplied (andiron/values.h), by component and export. They
 * are kept beside the plan, since a plan is made of them: it is built anew when one changes, and
 * takes a copy, so that what runs does not see the next value before its time. One thread. */
#pragma once

#include "base/str.h"

#include <andiron/value.h>

#include <stdbool.h>

#define SUPPLIED_MAX_BYTES ((uint64_t)1 << 20) /* of all texts of a value */

struct supplied;
struct arena;
struct plan;

/* NULL: out of memory. */
struct supplied *supplied_new(void);
void supplied_free(struct supplied *s);

/* 1 if it is another value than before, 0 if it is the same; -EINVAL for what is no value
 * (andiron/values.h), -ENOMEM. O(values + bytes). */
int supplied_set(struct supplied *s, const char *id, const char *export_name,
		 const struct andiron_value *value);

/* Borrowed until the next change; NULL: there is none. `s` may be NULL. O(values). */
const struct andiron_value *supplied_get(const struct supplied *s, const char *id,
					 const char *export_name);

/* Forgets those of components that the plan does not have. */
void supplied_prune(struct supplied *s, const struct plan *plan);

/* A copy in the arena: 0 or -ENOMEM. */
int supplied_copy(struct arena *arena, const struct andiron_value *value,
		  struct andiron_value *ret);

/* SPDX-License-Identifier: Apache-2.0 */
/* Interned strings: each distinct string once, under a dense id. Id 0 is the empty string. Nothing
 * is ever removed; a holder that churns makes a new table. INTERN_NULL is a valid empty table. */
#pragma once

#include "base/arena.h"
#include "base/index.h"
#include "base/str.h"
#include "base/vec.h"

struct intern {
	struct arena arena;
	struct index index;
	VEC(struct str) strings;
};

#define INTERN_NULL ((struct intern){0})

void intern_free(struct intern *t);

/* The string's id, making one if need be; INDEX_NONE when memory is short (unchanged). The string
 * is copied. Expected O(s.n). */
uint32_t intern_add(struct intern *t, struct str s);

/* The string of an id that the table gave; NUL-terminated, lives as long as the table. O(1). */
static inline struct str intern_get(const struct intern *t, uint32_t id)
{
	return id < t->strings.n ? t->strings.p[id] : STR_NULL;
}

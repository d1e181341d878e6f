/* SPDX-License-Identifier: Apache-2.0 */
/* A set of code points as ranges. While it is built, ranges may overlap and stand in any order;
 * charset_clean makes them ascending, disjoint and not adjacent. */
#pragma once

#include "base/vec.h"

#include <stdint.h>

struct range {
	uint32_t first, last;
};

struct charset {
	struct range *p;
	size_t n;
	size_t capacity;
};

/* 0 or -ENOMEM. */
int charset_add(struct charset *set, uint32_t first, uint32_t last);
int charset_add_all(struct charset *set, const struct range *ranges, size_t n);

/* O(n log n), nothing for what is clean already. */
void charset_clean(struct charset *set);

/* Cleans the set and makes it everything else. 0 or -ENOMEM. */
int charset_negate(struct charset *set);

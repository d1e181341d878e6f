/* SPDX-License-Identifier: Apache-2.0 */
/* Range allocator: a set of free ranges. It gives the smallest that is large enough, and joins what
 * is returned with its neighbours. Units are the owner's. Two treaps hold the ranges, by position
 * and by length. Room is reserved in advance, so returning cannot fail. */
#pragma once

#include "base/vec.h"

#include <stdint.h>

struct range {
	uint32_t start, n;
};

#define RANGES_BY_START  0
#define RANGES_BY_LENGTH 1
#define RANGES_ORDERS    2

struct ranges_node {
	struct range range;
	uint32_t rank;                    /* a parent's is not below its children's */
	uint32_t child[RANGES_ORDERS][2]; /* position in nodes plus 1; 0: none */
};

struct ranges {
	VEC(struct ranges_node) nodes;
	uint32_t root[RANGES_ORDERS];
	uint32_t unused; /* list of free nodes, by child[0][0] */
	uint32_t n;
	uint64_t total; /* units */
};

void ranges_free(struct ranges *e);

/* Room for so many ranges. 0 or -ENOMEM. */
int ranges_reserve(struct ranges *e, size_t n);

/* Adds a range; none of it may be there. There must be room for one more. Two ranges meet only
 * within the same `span` units (a power of two; a range never crosses it). Expected O(log n). */
void ranges_add(struct ranges *e, struct range add, uint32_t span);

/* Takes n units from the start of the shortest range that has them, the first of these by position.
 * False if there is none. Expected O(log n). */
bool ranges_take(struct ranges *e, uint32_t n, uint32_t *ret_start);

/* Removes a range that is there exactly as given; false if it is not. */
bool ranges_remove(struct ranges *e, struct range gone);

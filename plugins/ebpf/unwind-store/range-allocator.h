/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A set of free ranges that do not touch: the smallest that is large enough is found, and what is
 * given back is joined with its neighbours. Units are the owner's.
 *
 * Two search trees over the same ranges (treaps: their order is by key, their shape that of
 * random insertion), one by position, one by length. Room is made in advance, so giving back cannot
 * fail.
 */
#ifndef EBPF_UNWIND_STORE_RANGE_ALLOCATOR_H
#define EBPF_UNWIND_STORE_RANGE_ALLOCATOR_H

#include "base/vec.h"

#include <stdint.h>

struct extent {
	uint32_t start, n;
};

#define EXTENTS_BY_START  0
#define EXTENTS_BY_LENGTH 1
#define EXTENTS_ORDERS    2

struct extents_node {
	struct extent extent;
	uint32_t rank;                     /* a parent's is not below its children's */
	uint32_t child[EXTENTS_ORDERS][2]; /* position in nodes plus 1; 0: none */
};

struct extents {
	VEC(struct extents_node) nodes;
	uint32_t root[EXTENTS_ORDERS];
	uint32_t unused; /* list of free nodes, by child[0][0] */
	uint32_t n;
	uint64_t total; /* units */
};

void extents_free(struct extents *e);

/* Room for so many ranges. 0 or -ENOMEM. */
int extents_reserve(struct extents *e, size_t n);

/* Adds a range; none of it may be there. There must be room for one more. Two ranges meet only
 * within the same `span` units (a power of two; a range never crosses it). Expected O(log n). */
void extents_add(struct extents *e, struct extent add, uint32_t span);

/* Takes n units from the start of the shortest range that has them, the first of these by position.
 * False if there is none. Expected O(log n). */
bool extents_take(struct extents *e, uint32_t n, uint32_t *ret_start);

/* Removes a range that is there exactly as given; false if it is not. */
bool extents_remove(struct extents *e, struct extent gone);

#endif

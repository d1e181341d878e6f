/* SPDX-License-Identifier: Apache-2.0 */
/* What is due next: a binary heap of pointers by time. An item is a struct that holds a
 * `struct due`; it knows its place, so that it can be taken out. O(log n) each. */
#pragma once

#include "base/vec.h"

#include <stdint.h>

#define DUE_NOWHERE UINT32_MAX

struct due {
	int64_t at_ns;  /* CLOCK_MONOTONIC; not to be changed while it is in the heap */
	uint32_t place; /* DUE_NOWHERE: in none */
};

struct due_heap {
	VEC(struct due *) items;
};

/* False when memory is short. */
bool due_add(struct due_heap *heap, struct due *item);
/* Takes it out; nothing if it is in none. */
void due_remove(struct due_heap *heap, struct due *item);

/* The earliest, NULL if there is none. */
static inline struct due *due_first(const struct due_heap *heap)
{
	return heap->items.n ? heap->items.p[0] : NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Requests by their number, at either end: thousands are under way at once, and each message names
 * one. An item is a struct that begins with a `struct numbered`; it knows its place, so that all
 * can be gone through in any order. O(1) each, expected. */
#pragma once

#include "base/index.h"
#include "base/vec.h"

#include <stdint.h>

struct numbered {
	uint64_t id;    /* of one item alone; not to be changed while it is in the table */
	uint32_t place; /* in `items` */
};

struct numbered_table {
	VEC(struct numbered *) items;
	struct index by_id;
};

/* 0 or -ENOMEM. */
int numbered_add(struct numbered_table *table, struct numbered *item);
/* Takes out one that is there; the last of the items takes its place. */
void numbered_remove(struct numbered_table *table, struct numbered *item);
/* NULL: there is none. */
struct numbered *numbered_find(const struct numbered_table *table, uint64_t id);
/* The last of the items, NULL if there is none. */
static inline struct numbered *numbered_last(const struct numbered_table *table)
{
	return table->items.n ? table->items.p[table->items.n - 1] : NULL;
}
/* Frees the table, not what is in it. */
void numbered_free(struct numbered_table *table);

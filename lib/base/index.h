/* SPDX-License-Identifier: Apache-2.0 */
/* A hash index over somebody else's array: it maps a 64-bit hash to 32-bit positions, and the
 * caller's `same` decides whether a position is the one sought. So one small map serves every key
 * type, and the elements stay where their owner keeps them. INDEX_NULL is a valid empty index.
 *
 * Open addressing with linear probing, at most 3/4 full, backward-shift removal (no tombstones).
 * Not meant for hashes that untrusted input can steer: use hash_bytes, which is seeded. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INDEX_NONE UINT32_MAX

struct index_slot {
	uint32_t hash;     /* the upper half, to spare most calls of `same` */
	uint32_t position; /* INDEX_NONE: empty */
};

struct index {
	struct index_slot *slots;
	size_t n, capacity;
};

#define INDEX_NULL ((struct index){0})

typedef bool (*index_same_fn)(const void *context, uint32_t position);

void index_free(struct index *ix);
void index_clear(struct index *ix);

/* The position that is `same`, or INDEX_NONE. Expected O(1). */
uint32_t index_find(const struct index *ix, uint64_t hash, index_same_fn same, const void *context);

/* Adds a position that is not there yet; 0 or -ENOMEM (unchanged). */
int index_add(struct index *ix, uint64_t hash, uint32_t position);

/* Removes a position, false if it was not there. */
bool index_remove(struct index *ix, uint64_t hash, uint32_t position);

/* Changes the position of an entry that is there (the element has moved). */
void index_move(struct index *ix, uint64_t hash, uint32_t from, uint32_t to);

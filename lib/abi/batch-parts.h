/* SPDX-License-Identifier: Apache-2.0 */
/* A batch in the making, as batch-build.c (adding) and batch-finish.c (laying out) share it.
 * Internal to lib/abi. */
#pragma once

#include "abi/batch-build.h"
#include "base/buf.h"
#include "base/index.h"
#include "base/vec.h"

#define N_COLUMNS (ANDIRON_COL_ENCODED + 1)

struct table {
	char *p;
	size_t n, capacity;
	uint32_t elem_size;
	uint32_t key; /* bytes by which records are interned; 0: they are not */
	bool null_entry;
	bool replaced; /* the parent's is not borrowed, even if this is empty */
	struct index index;
};

/* A stretch of the ATTR_INDEX pool, interned by content. */
struct run {
	uint32_t start, n;
};

struct held_object {
	const struct andiron_objects *objects;
	void *self;
	uint64_t id;
};

struct batch_builder {
	struct table tables[N_COLUMNS];
	struct buf bytes; /* of strings that are new, and of encoded profiles */
	uint32_t segment; /* the segment that this builder will add */
	VEC(struct run) runs;
	struct index run_index;
	VEC(struct held_object) held;
	const struct andiron_batch *parent;
	uint64_t samples;
	int failed;
};

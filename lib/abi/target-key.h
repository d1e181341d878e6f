/* SPDX-License-Identifier: Apache-2.0 */
/* Where in its array a consumer has the target of a producer and a row. The array is the consumer's
 * and dense: what is removed gives its place to the last one. The index is empty when it is zero,
 * and freed by index_free. */
#pragma once

#include "base/index.h"

#include <stdint.h>

struct target_key {
	uint64_t producer, row;
};

/* The key of what stands at a position of the array. */
typedef struct target_key (*target_key_fn)(const void *array, uint32_t position);

/* INDEX_NONE where there is none. Expected O(1). */
uint32_t target_key_find(const struct index *ix, struct target_key key, target_key_fn key_at,
			 const void *array);
/* Adds what is not there yet; 0 or -ENOMEM (unchanged). */
int target_key_add(struct index *ix, struct target_key key, size_t position);
/* Forgets one, in whose place the caller puts the last thereafter. */
void target_key_remove(struct index *ix, uint32_t position, uint32_t last, target_key_fn key_at,
		       const void *array);

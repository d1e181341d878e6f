/* SPDX-License-Identifier: Apache-2.0 */
/* Places of targets by their ids. Contract in target-key.h. */
#include "abi/target-key.h"

#include "base/check.h"
#include "base/hash.h"

#include <errno.h>

static uint64_t hash_of(struct target_key key)
{
	return hash_mix(key.producer, key.row);
}

struct probe {
	struct target_key key;
	target_key_fn key_at;
	const void *array;
};

static bool same(const void *context, uint32_t position)
{
	const struct probe *p = context;
	struct target_key key = p->key_at(p->array, position);

	return key.producer == p->key.producer && key.row == p->key.row;
}

uint32_t target_key_find(const struct index *ix, struct target_key key, target_key_fn key_at,
			 const void *array)
{
	const struct probe probe = {key, key_at, array};

	return index_find(ix, hash_of(key), same, &probe);
}

int target_key_add(struct index *ix, struct target_key key, size_t position)
{
	if (position >= INDEX_NONE)
		return -ENOMEM;
	return index_add(ix, hash_of(key), (uint32_t)position);
}

void target_key_remove(struct index *ix, uint32_t position, uint32_t last, target_key_fn key_at,
		       const void *array)
{
	check(position <= last);
	index_remove(ix, hash_of(key_at(array, position)), position);
	if (position != last)
		index_move(ix, hash_of(key_at(array, last)), last, position);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The hash index. Contract in index.h. */
#include "base/index.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void index_free(struct index *ix)
{
	free(ix->slots);
	*ix = INDEX_NULL;
}

void index_clear(struct index *ix)
{
	if (ix->slots)
		memset(ix->slots, 0xff, ix->capacity * sizeof(*ix->slots));
	ix->n = 0;
}

/* A slot keeps 32 bits of the hash, and both start and order derive from them, so that growing
 * needs no rehash by the caller. */
static uint32_t fold(uint64_t hash)
{
	return (uint32_t)(hash ^ hash >> 32);
}

static void place(struct index_slot *slots, size_t mask, struct index_slot slot)
{
	size_t i = slot.hash & mask;

	while (slots[i].position != INDEX_NONE)
		i = (i + 1) & mask;
	slots[i] = slot;
}

static int grow(struct index *ix)
{
	size_t capacity = ix->capacity ? ix->capacity * 2 : 16;
	struct index_slot *slots;

	if (capacity > SIZE_MAX / sizeof(*slots))
		return -ENOMEM;
	slots = malloc(capacity * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	memset(slots, 0xff, capacity * sizeof(*slots));
	for (size_t i = 0; i < ix->capacity; i++)
		if (ix->slots[i].position != INDEX_NONE)
			place(slots, capacity - 1, ix->slots[i]);
	free(ix->slots);
	ix->slots = slots;
	ix->capacity = capacity;
	return 0;
}

uint32_t index_find(const struct index *ix, uint64_t hash, index_same_fn same, const void *context)
{
	size_t mask = ix->capacity - 1;
	uint32_t h = fold(hash);

	if (ix->n == 0)
		return INDEX_NONE;
	for (size_t i = h & mask; ix->slots[i].position != INDEX_NONE; i = (i + 1) & mask)
		if (ix->slots[i].hash == h && same(context, ix->slots[i].position))
			return ix->slots[i].position;
	return INDEX_NONE;
}

int index_add(struct index *ix, uint64_t hash, uint32_t position)
{
	check(position != INDEX_NONE);
	if ((ix->n + 1) * 4 > ix->capacity * 3 && grow(ix) < 0)
		return -ENOMEM;
	check(ix->n < ix->capacity); /* or searches would not end */
	place(ix->slots, ix->capacity - 1, (struct index_slot){fold(hash), position});
	ix->n++;
	return 0;
}

static size_t slot_of(const struct index *ix, uint64_t hash, uint32_t position)
{
	size_t mask = ix->capacity - 1;

	if (ix->n == 0)
		return ix->capacity;
	for (size_t i = fold(hash) & mask; ix->slots[i].position != INDEX_NONE; i = (i + 1) & mask)
		if (ix->slots[i].position == position)
			return i;
	return ix->capacity;
}

bool index_remove(struct index *ix, uint64_t hash, uint32_t position)
{
	size_t hole = slot_of(ix, hash, position), mask = ix->capacity - 1;

	if (hole == ix->capacity)
		return false;
	/* Close the gap: an entry may move into the hole unless its home lies cyclically between
	 * the hole and itself. */
	for (size_t i = (hole + 1) & mask; ix->slots[i].position != INDEX_NONE;
	     i = (i + 1) & mask) {
		size_t home = ix->slots[i].hash & mask;

		if (((i - home) & mask) >= ((i - hole) & mask)) {
			ix->slots[hole] = ix->slots[i];
			hole = i;
		}
	}
	check(ix->n > 0);
	ix->slots[hole].position = INDEX_NONE;
	ix->n--;
	return true;
}

void index_move(struct index *ix, uint64_t hash, uint32_t from, uint32_t to)
{
	size_t i = slot_of(ix, hash, from);

	check(i < ix->capacity);
	ix->slots[i].position = to;
}

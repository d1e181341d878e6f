/* SPDX-License-Identifier: Apache-2.0 */
/* Ids for pointers: an id is a place in an array and that place's generation, so that looking one
 * up is O(1) and an id that was given back never finds its successor. The owner of the table locks.
 */
#pragma once

#include "base/vec.h"

#include <stdint.h>

struct slot {
	void *p; /* NULL: free */
	uint32_t generation;
	uint32_t next_free;
};

struct slots {
	VEC(struct slot) list;
	uint32_t first_free; /* counted from 1; 0: none */
};

static inline void slots_free(struct slots *s)
{
	vec_free(&s->list);
}

/* The id for p, never 0; 0 when memory is short. */
static inline uint64_t slots_add(struct slots *s, void *p)
{
	uint32_t place = s->first_free;

	if (place)
		s->first_free = s->list.p[place - 1].next_free;
	else if (s->list.n == UINT32_MAX - 1 || !vec_push(&s->list, ((struct slot){0})))
		return 0;
	else
		place = (uint32_t)s->list.n;
	s->list.p[place - 1].p = p;
	return (uint64_t)s->list.p[place - 1].generation << 32 | place;
}

static inline struct slot *slots_at(const struct slots *s, uint64_t id)
{
	uint32_t place = (uint32_t)id;

	if (place == 0 || place > s->list.n || s->list.p[place - 1].generation != id >> 32)
		return NULL;
	return &s->list.p[place - 1];
}

static inline void *slots_get(const struct slots *s, uint64_t id)
{
	const struct slot *slot = slots_at(s, id);

	return slot ? slot->p : NULL;
}

/* Gives an id back; an unknown one is no error. */
static inline void slots_remove(struct slots *s, uint64_t id)
{
	struct slot *slot = slots_at(s, id);

	if (!slot || !slot->p)
		return;
	slot->p = NULL;
	slot->generation++;
	slot->next_free = s->first_free;
	s->first_free = (uint32_t)id;
}

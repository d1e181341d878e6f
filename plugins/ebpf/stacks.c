/* SPDX-License-Identifier: Apache-2.0 */
/* See stacks.h. Offsets in the pool, not pointers, since the pool moves. */
#include "stacks.h"

#include "base/check.h"
#include "base/hash.h"

#include <errno.h>
#include <string.h>

#define HEADER_WORDS (sizeof(struct sampler_stack) / sizeof(uint64_t))
#define KEEP_WORDS   (64u << 10)

_Static_assert(sizeof(struct sampler_stack) % sizeof(uint64_t) == 0, "records stay aligned");

struct sought {
	const struct stacks *stacks;
	uint64_t id;
};

static const struct sampler_stack *at(const struct stacks *s, uint32_t position)
{
	check(position + HEADER_WORDS <= s->words.n);
	return (const struct sampler_stack *)(const void *)&s->words.p[position];
}

static bool same_id(const void *context, uint32_t position)
{
	const struct sought *sought = context;

	return at(sought->stacks, position)->id == sought->id;
}

void stacks_free(struct stacks *s)
{
	vec_free(&s->words);
	index_free(&s->index);
}

void stacks_clear(struct stacks *s)
{
	if (s->words.capacity > KEEP_WORDS)
		stacks_free(s);
	s->words.n = 0;
	index_clear(&s->index);
}

int stacks_add(struct stacks *s, const void *record, size_t size)
{
	struct sampler_stack head;
	size_t n, position = s->words.n;

	if (size < sizeof(head))
		return -EINVAL;
	memcpy(&head, record, sizeof(head));
	n = HEADER_WORDS + head.n_kernel + head.n_user;
	if (head.n_kernel + head.n_user > ANDIRON_WALK_WORDS ||
	    size < n * sizeof(uint64_t))
		return -EINVAL;
	if (position + n > STACKS_MAX_WORDS)
		return -E2BIG;
	if (!vec_reserve(&s->words, n))
		return -ENOMEM;
	memcpy(&s->words.p[position], record, n * sizeof(uint64_t));
	s->words.n += n;
	if (index_add(&s->index, hash_u64(head.id), (uint32_t)position) != 0) {
		s->words.n = position;
		return -ENOMEM;
	}
	return 0;
}

const struct sampler_stack *stacks_find(const struct stacks *s, uint64_t id,
					const uint64_t **ret_pcs)
{
	struct sought sought = {s, id};
	uint32_t position = index_find(&s->index, hash_u64(id), same_id, &sought);

	if (position == INDEX_NONE)
		return NULL;
	*ret_pcs = &s->words.p[position + HEADER_WORDS];
	return at(s, position);
}

void stacks_each(const struct stacks *s,
		 void (*fn)(void *context, const struct sampler_stack *stack, const uint64_t *pcs),
		 void *context)
{
	for (size_t i = 0; i < s->words.n;) {
		const struct sampler_stack *stack = at(s, (uint32_t)i);

		fn(context, stack, &s->words.p[i + HEADER_WORDS]);
		i += HEADER_WORDS + stack->n_kernel + stack->n_user;
	}
}

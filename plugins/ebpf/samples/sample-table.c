/* SPDX-License-Identifier: Apache-2.0 */
/* See sample-table.h. Offsets in the pool, not pointers, since the pool moves. */
#include "ebpf/samples/sample-table.h"

#include "base/check.h"
#include "base/hash.h"

#include <errno.h>
#include <string.h>

#define KEEP_WORDS (64u << 10)

struct sought {
	const struct sample_table *stacks;
	struct sampler_stack head; /* as comparable() has it */
	const uint64_t *pcs;
	uint64_t id; /* where that is sought */
};

/* A position is that of the number that stands before the record. */
static const struct sampler_stack *at(const struct sample_table *s, uint32_t position)
{
	check(position + 1 + SAMPLER_STACK_WORDS <= s->words.n);
	return (const struct sampler_stack *)(const void *)&s->words.p[position + 1];
}

static size_t words_of(const struct sampler_stack *head)
{
	return SAMPLER_STACK_WORDS + head->n_kernel + head->n_user;
}

/* Waits are equal however long they are. */
static struct sampler_stack comparable(struct sampler_stack head)
{
	if (sampler_is_wait(&head))
		head.id = 0;
	return head;
}

static bool same_id(const void *context, uint32_t position)
{
	const struct sought *sought = context;
	const struct sampler_stack *head = at(sought->stacks, position);

	return head->id == sought->id && !sampler_is_wait(head);
}

static bool same_record(const void *context, uint32_t position)
{
	const struct sought *sought = context;
	const struct sampler_stack *found = at(sought->stacks, position);
	const struct sampler_stack head = comparable(*found);
	size_t n = words_of(&head) - SAMPLER_STACK_WORDS;

	return memcmp(&head, &sought->head, sizeof(head)) == 0 &&
	       memcmp(found + 1, sought->pcs, n * sizeof(uint64_t)) == 0;
}

void sample_table_free(struct sample_table *s)
{
	vec_free(&s->words);
	index_free(&s->index);
	s->lost = 0;
}

void sample_table_clear(struct sample_table *s)
{
	if (s->words.capacity > KEEP_WORDS)
		sample_table_free(s);
	s->words.n = 0;
	s->lost = 0;
	index_clear(&s->index);
}

static int append(struct sample_table *s, const uint64_t *record, size_t n, uint64_t hash)
{
	size_t position = s->words.n;

	if (position + 1 + n > SAMPLE_TABLE_MAX_WORDS)
		return -E2BIG;
	if (!vec_reserve(&s->words, 1 + n))
		return -ENOMEM;
	s->words.p[position] = 1;
	memcpy(&s->words.p[position + 1], record, n * sizeof(*record));
	s->words.n += 1 + n;
	if (index_add(&s->index, hash, (uint32_t)position) != 0) {
		s->words.n = position;
		return -ENOMEM;
	}
	return 0;
}

static void count_again(struct sample_table *s, uint32_t position, const struct sampler_stack *head)
{
	struct sampler_stack *found =
		(struct sampler_stack *)(void *)&s->words.p[position + 1];

	s->words.p[position]++;
	if (sampler_is_wait(head))
		found->id += head->id;
}

int sample_table_add(struct sample_table *s, const void *record, size_t size)
{
	struct sought sought = {.stacks = s};
	struct sampler_stack head;
	uint32_t position = INDEX_NONE;
	uint64_t hash;
	size_t n;
	int r;

	if (size < sizeof(head))
		return -EINVAL;
	memcpy(&head, record, sizeof(head));
	n = words_of(&head);
	if (n > SAMPLER_STACK_WORDS + ANDIRON_WALK_WORDS || size < n * sizeof(uint64_t))
		return -EINVAL;
	sought.head = comparable(head);
	sought.pcs = (const uint64_t *)record + SAMPLER_STACK_WORDS;
	hash = hash_u64(sought.head.id);
	if (sought.head.id == 0) {
		hash = hash_mix(
			hash_bytes(&sought.head, sizeof(head)),
			hash_bytes(sought.pcs, (n - SAMPLER_STACK_WORDS) * sizeof(uint64_t)));
		position = index_find(&s->index, hash, same_record, &sought);
	}
	if (position != INDEX_NONE) {
		count_again(s, position, &head);
		return 0;
	}
	r = append(s, record, n, hash);
	s->lost += r != 0 && (sampler_is_wait(&head) || !(head.id & SAMPLER_STACK_COMPLETED));
	return r;
}

const struct sampler_stack *sample_table_find(const struct sample_table *s, uint64_t id,
					      const uint64_t **ret_pcs)
{
	struct sought sought = {.stacks = s, .id = id};
	uint32_t position = index_find(&s->index, hash_u64(id), same_id, &sought);

	if (position == INDEX_NONE)
		return NULL;
	*ret_pcs = &s->words.p[position + 1 + SAMPLER_STACK_WORDS];
	return at(s, position);
}

void sample_table_each(const struct sample_table *s,
		       void (*fn)(void *context, const struct sampler_stack *stack,
				  const uint64_t *pcs, uint64_t samples),
		       void *context)
{
	for (size_t i = 0; i < s->words.n;) {
		const struct sampler_stack *stack = at(s, (uint32_t)i);
		size_t n = words_of(stack);

		check(i + 1 + n <= s->words.n);
		fn(context, stack, &s->words.p[i + 1 + SAMPLER_STACK_WORDS], s->words.p[i]);
		i += 1 + n;
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See walks.h. */
#include "walks.h"

#include "image-rows.h"
#include "walk.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

/* Stacks of which parts have come: as many as there may be threads that send them at a time, or nearly. */
#define DEEP_MAX 8

struct deep {
	uint64_t id;
	uint32_t half;
	uint32_t n_parts; /* including the first, which comes last; 0: free */
	uint64_t n;       /* bytes, up to the end of the last part */
	uint8_t *bytes;   /* of all parts that there may be, or NULL */
};

struct walks {
	struct andiron_extension objects;
	const struct unwind_kernel *kernel;
	struct unwind *store;
	struct runtimes *runtimes; /* or NULL */
	struct stacks found[SAMPLER_HALVES]; /* what captures brought, by the stack's id */
	struct deep deep[DEEP_MAX];
	uint32_t next_deep; /* whose place is taken next */
	struct walks_stats stats;
	struct andiron_walk walk;
	uint64_t joined[SAMPLER_STACK_WORDS + ANDIRON_WALK_WORDS];
};

struct walks *walks_new(struct session *session, const struct andiron_extension *objects,
			uint64_t budget_bytes, void (*meanwhile)(void *context), void *context)
{
	struct walks *w = calloc(1, sizeof(*w));
	struct unwind_options options = {.budget_bytes = budget_bytes,
					 .read = image_rows_read,
					 .meanwhile = meanwhile,
					 .meanwhile_context = context};

	if (!w)
		return NULL;
	w->objects = *objects;
	w->kernel = session_memory(session);
	options.read_context = &w->objects;
	w->store = unwind_new(w->kernel, &options);
	if (!w->store) {
		free(w);
		return NULL;
	}
	return w;
}

void walks_free(struct walks *w)
{
	if (!w)
		return;
	runtimes_free(w->runtimes);
	unwind_free(w->store);
	for (size_t i = 0; i < SAMPLER_HALVES; i++)
		stacks_free(&w->found[i]);
	for (size_t i = 0; i < DEEP_MAX; i++)
		free(w->deep[i].bytes);
	free(w);
}

void walks_add_runtimes(struct walks *w, struct runtimes *runtimes)
{
	check(!w->runtimes);
	w->runtimes = runtimes;
}

struct runtimes *walks_runtimes(const struct walks *w)
{
	return w->runtimes;
}

void walks_process(struct walks *w, struct process *p)
{
	const struct mapset *maps = p->maps; /* while its files are read there may come others */

	if (!maps || maps == p->told)
		return;
	if (w->runtimes)
		runtimes_process(w->runtimes, p, w->store);
	/* Without a space its stacks end at their first frame, and say so. */
	if (unwind_map(w->store, &p->key, maps->layout, maps) == 0)
		p->told = maps;
}

void walks_gone(struct walks *w, const struct process *p)
{
	unwind_unmap(w->store, &p->key);
	if (w->runtimes)
		runtimes_gone(w->runtimes, p);
}

static const uint8_t *slab(void *context, uint32_t number)
{
	return unwind_slab(((struct walks *)context)->store, number);
}

/*
 * Memory that a walk could not read is there once somebody has touched it; the next sample of the
 * same stack finds it. Not needed where the copy has it.
 */
static void touch(struct walks *w, const struct sampler_capture *c)
{
	char byte;
	struct iovec to = {&byte, 1};

	for (uint64_t i = 0; i < 2; i++) {
		uint64_t at = (c->regs[WALK_STACK_POINTER] & ~UINT64_C(4095)) + i * 4096;
		struct iovec from = {(void *)(uintptr_t)at, 1}; /* NOLINT: an address elsewhere */

		w->stats.touched += process_vm_readv((pid_t)c->key.tgid, &to, 1, &from, 1, 0) == 1;
	}
}

/* Keeps the frames of w->walk as a record of its own. */
static void keep(struct walks *w, const struct sampler_capture *c)
{
	struct sampler_stack head = {
		.type = SAMPLER_RECORD_STACK,
		.n_user = (uint16_t)w->walk.n_words,
		.end = w->walk.end,
		.id = c->id,
	};

	memcpy(w->walk.head, &head, sizeof(head));
	stacks_add(&w->found[c->half], w->walk.head,
		   sizeof(head) + w->walk.n_words * sizeof(uint64_t));
}

bool walks_is_capture(const void *record, size_t size)
{
	const struct sampler_capture *c = record; /* the ring aligns records to 8 bytes */

	return size >= SAMPLER_CAPTURE_HEAD && c->n <= SAMPLER_CAPTURE_BYTES &&
	       size >= SAMPLER_CAPTURE_HEAD + c->n;
}

static struct deep *find_deep(struct walks *w, const struct sampler_capture *c)
{
	for (size_t i = 0; i < DEEP_MAX; i++)
		if (w->deep[i].n_parts && w->deep[i].id == c->id && w->deep[i].half == c->half)
			return &w->deep[i];
	return NULL;
}

/* A place for a stack of which the second part has come; whose capture never came loses its own. */
static struct deep *begin_deep(struct walks *w, const struct sampler_capture *c)
{
	struct deep *d = &w->deep[w->next_deep++ % DEEP_MAX];

	if (!d->bytes)
		d->bytes = malloc((size_t)SAMPLER_CAPTURE_PARTS * SAMPLER_CAPTURE_BYTES);
	d->id = c->id;
	d->half = c->half;
	d->n_parts = d->bytes ? 1 : 0;
	return d->bytes ? d : NULL;
}

void walks_more(struct walks *w, const struct sampler_capture *part)
{
	struct deep *d = part->part == 1 ? begin_deep(w, part) : find_deep(w, part);

	/* In order and without gaps, or it is none of ours. */
	if (!d || part->part >= SAMPLER_CAPTURE_PARTS || part->part != d->n_parts || part->n > SAMPLER_CAPTURE_BYTES)
		return;
	memcpy(d->bytes + part->part * SAMPLER_CAPTURE_BYTES, part->stack, part->n);
	d->n = part->part * SAMPLER_CAPTURE_BYTES + part->n;
	d->n_parts++;
}

/* The whole copy of a capture's stack. Parts above one that is not whole are not next to it. */
static struct walk_stack stack_of(struct walks *w, const struct sampler_capture *c)
{
	struct walk_stack stack = {c->stack, c->n};
	struct deep *d = find_deep(w, c);

	if (!d)
		return stack;
	if (c->n == SAMPLER_CAPTURE_BYTES && d->n_parts > 1) {
		memcpy(d->bytes, c->stack, c->n);
		stack = (struct walk_stack){d->bytes, d->n};
		w->stats.deep++;
	}
	d->n_parts = 0;
	return stack;
}

/* What is not needed for a whole interval is given back. */
static void rest_deep(struct walks *w)
{
	for (size_t i = 0; i < DEEP_MAX && w->next_deep == 0; i++) {
		free(w->deep[i].bytes);
		w->deep[i] = (struct deep){0};
	}
	w->next_deep = 0;
}

void walks_capture(struct walks *w, const struct process *p, const struct sampler_capture *c)
{
	struct walk_tables tables = {w, slab, w->kernel->rules, UNWIND_RULES_MAX + 1,
				     session_pc_mask()};
	struct walk_stack stack;
	uint64_t word;

	w->stats.captures++;
	if (c->half >= SAMPLER_HALVES || c->n > SAMPLER_CAPTURE_BYTES)
		return;
	stack = stack_of(w, c);
	word = unwind_word(w->store, &p->key, c->layout);
	if (word == 0) {
		w->stats.unknown++;
		return;
	}
	walk_capture(&tables, c, &stack, word, &w->walk);
	w->stats.completed += w->walk.end == UNWIND_END_COMPLETE;
	if (w->walk.end == UNWIND_END_CUT)
		touch(w, c);
	keep(w, c);
}

/* The frames of `stack` up to the one that the capture begins with, and then its own. */
static void join(struct walks *w, const struct sampler_stack *stack, const uint64_t *pcs,
		 const struct sampler_stack *rest, const uint64_t *more, struct stacks *stacks)
{
	uint32_t have = (uint32_t)stack->n_kernel + stack->n_user, n = rest->n_user;
	struct sampler_stack head = *stack;

	have -= stack->n_user > 0;
	if (have + n > ANDIRON_WALK_WORDS)
		n = ANDIRON_WALK_WORDS - have;
	head.n_user = (uint16_t)(have - stack->n_kernel + n);
	head.end = n < rest->n_user ? UNWIND_END_TRUNCATED : rest->end;
	head.id |= SAMPLER_STACK_COMPLETED;
	memcpy(w->joined, &head, sizeof(head));
	memcpy(&w->joined[SAMPLER_STACK_WORDS], pcs, have * sizeof(*pcs));
	memcpy(&w->joined[SAMPLER_STACK_WORDS + have], more, n * sizeof(*more));
	stacks_add(stacks, w->joined, (SAMPLER_STACK_WORDS + have + n) * sizeof(uint64_t));
}

struct settling {
	struct walks *w;
	struct stacks *stacks;
};

static void settle(void *context, const struct sampler_stack *rest, const uint64_t *more)
{
	struct settling *s = context;
	const uint64_t *pcs;
	const struct sampler_stack *stack = stacks_find(s->stacks, rest->id, &pcs);

	if (stack)
		join(s->w, stack, pcs, rest, more, s->stacks);
}

void walks_settle(struct walks *w, uint32_t half, struct stacks *stacks)
{
	struct settling s = {w, stacks};

	check(half < SAMPLER_HALVES);
	stacks_each(&w->found[half], settle, &s);
	stacks_clear(&w->found[half]);
}

const struct sampler_stack *walks_find(const struct stacks *stacks, uint64_t id,
				       const uint64_t **ret_pcs)
{
	const struct sampler_stack *stack = stacks_find(stacks, id | SAMPLER_STACK_COMPLETED, ret_pcs);

	return stack ? stack : stacks_find(stacks, id, ret_pcs);
}

void walks_tick(struct walks *w)
{
	unwind_tick(w->store);
	rest_deep(w);
}

struct unwind *walks_store(struct walks *w)
{
	return w->store;
}

void walks_get_stats(const struct walks *w, struct walks_stats *ret)
{
	*ret = w->stats;
}

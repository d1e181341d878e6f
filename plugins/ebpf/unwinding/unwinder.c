/* SPDX-License-Identifier: Apache-2.0 */
/* See unwinder.h. */
#include "ebpf/unwinding/unwinder.h"

#include "ebpf/unwinding/file-unwind.h"
#include "ebpf/unwind-store/mapped-rows.h"

#include "base/check.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

struct unwinder {
	struct andiron_extension objects;
	const struct unwind_kernel *kernel;
	struct unwind *store;
	struct runtimes *runtimes;                  /* or NULL */
	struct sample_table found[SAMPLER_BUFFERS]; /* what snapshots brought, by the stack's id */
	struct file_unwind file_unwind;
	struct unwinder_stats stats;
	struct andiron_walk walk;
	uint64_t joined[SAMPLER_STACK_WORDS + ANDIRON_WALK_WORDS];
};

struct unwinder *unwinder_new(const struct unwind_kernel *kernel,
			      const struct andiron_extension *objects, uint64_t budget_bytes)
{
	struct unwinder *w = calloc(1, sizeof(*w));
	struct unwind_options options = {.budget_bytes = budget_bytes, .read = mapped_rows_read};

	if (!w)
		return NULL;
	w->objects = *objects;
	w->kernel = kernel;
	options.read_context = &w->objects;
	w->store = unwind_new(w->kernel, &options);
	if (!w->store) {
		free(w);
		return NULL;
	}
	return w;
}

void unwinder_free(struct unwinder *w)
{
	if (!w)
		return;
	runtimes_free(w->runtimes);
	unwind_free(w->store);
	for (size_t i = 0; i < SAMPLER_BUFFERS; i++)
		sample_table_free(&w->found[i]);
	file_unwind_free(&w->file_unwind);
	free(w);
}

void unwinder_add_runtimes(struct unwinder *w, struct runtimes *runtimes)
{
	check(!w->runtimes);
	w->runtimes = runtimes;
}

struct runtimes *unwinder_runtimes(const struct unwinder *w)
{
	return w->runtimes;
}

bool unwinder_process(struct unwinder *w, struct process *p)
{
	int r;

	if (!p->maps || p->maps == p->stored)
		return true;
	if (w->runtimes && !runtimes_process(w->runtimes, p, w->store))
		return false;
	/* Without an address space its stacks end at their first frame, and say so. */
	r = unwind_map(w->store, &p->key, p->maps->generation, p->maps);
	if (r == 0)
		p->stored = p->maps;
	return r != 1;
}

int64_t unwinder_due(const struct unwinder *w)
{
	return w->runtimes ? runtimes_due(w->runtimes) : INT64_MAX;
}

void unwinder_begin_retries(struct unwinder *w)
{
	if (w->runtimes)
		runtimes_begin_retries(w->runtimes);
}

bool unwinder_retry(struct unwinder *w, struct process *p, int64_t now_ns)
{
	if (!w->runtimes || !runtimes_retry(w->runtimes, p, now_ns))
		return true;
	p->stored = NULL;
	return unwinder_process(w, p);
}

bool unwinder_look(struct unwinder *w, struct process *p)
{
	if (w->runtimes && p->maps && p->runtimes.retry) {
		p->maps->claimed = false;
		p->stored = NULL;
	}
	return unwinder_process(w, p);
}

void unwinder_gone(struct unwinder *w, const struct process *p)
{
	unwind_unmap(w->store, &p->key);
	if (w->runtimes)
		runtimes_gone(w->runtimes, p);
}

bool unwinder_reading(const struct unwinder *w)
{
	return unwind_reading(w->store) || (w->runtimes && runtimes_loading(w->runtimes));
}

void unwinder_wait(struct unwinder *w, int fd)
{
	struct pollfd p[] = {{.fd = unwind_fd(w->store), .events = POLLIN},
			     {.fd = fd, .events = POLLIN}};

	/* Snapshots do not wake anybody until they fill the ring. */
	poll(p, 2, 10);
	unwind_take(w->store);
	if (w->runtimes)
		runtimes_take(w->runtimes);
}

static const uint8_t *slab(void *context, uint32_t number)
{
	return unwind_slab(((struct unwinder *)context)->store, number);
}

/* Memory that a walk could not read is there once somebody has touched it; the next sample of the
 * same stack finds it. Not needed where the copy has it. */
static void touch(struct unwinder *w, const struct sampler_snapshot *c)
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
static void keep(struct unwinder *w, const struct sampler_snapshot *c)
{
	struct sampler_stack head = {
		.type = SAMPLER_RECORD_STACK,
		.n_user = (uint16_t)w->walk.n_words,
		.end = w->walk.end,
		.id = c->id,
	};

	check(c->buffer < SAMPLER_BUFFERS && w->walk.n_words <= ANDIRON_WALK_WORDS);
	memcpy(w->walk.head, &head, sizeof(head));
	sample_table_add(&w->found[c->buffer], w->walk.head,
			 sizeof(head) + w->walk.n_words * sizeof(uint64_t));
}

/* Of what a snapshot has come to. */
static void take_walk(struct unwinder *w, const struct sampler_snapshot *c)
{
	w->stats.completed += w->walk.end == UNWIND_END_COMPLETE;
	if (w->walk.end == UNWIND_END_CUT)
		touch(w, c);
	keep(w, c);
}

bool unwinder_is_snapshot(const void *record, size_t size)
{
	const struct sampler_snapshot *c = record; /* the ring aligns records to 8 bytes */

	return size >= SAMPLER_SNAPSHOT_HEAD && c->n <= SAMPLER_SNAPSHOT_BYTES &&
	       size >= SAMPLER_SNAPSHOT_HEAD + c->n;
}

static void count(struct unwinder *w, const struct walk_stack stacks[SAMPLER_COPIES])
{
	w->stats.snapshots++;
	w->stats.deep += stacks[SAMPLER_COPY_STACK].n > SAMPLER_SNAPSHOT_BYTES;
	w->stats.other += stacks[SAMPLER_COPY_OTHER].n > 0;
}

/* By the files themselves. */
static bool unwind_by_file(struct unwinder *w, struct process *p, const struct sampler_snapshot *c,
			   const struct walk_stack stacks[SAMPLER_COPIES])
{
	const struct mapset *maps = process_maps(p, c->generation);

	if (!maps || (w->runtimes && runtimes_walk(w->runtimes, p, maps, w->store)) ||
	    !file_unwind_walk(&w->file_unwind, &w->objects, maps, c, stacks, &w->walk))
		return false;
	w->stats.by_file++;
	take_walk(w, c);
	return true;
}

bool unwinder_file_unwind(struct unwinder *w, struct process *p, const struct sampler_snapshot *c,
			  const struct walk_stack stacks[SAMPLER_COPIES])
{
	/* Also where the store knows the process, by its mappings before the files being read. */
	if (c->buffer >= SAMPLER_BUFFERS || !unwind_by_file(w, p, c, stacks))
		return false;
	count(w, stacks);
	return true;
}

void unwinder_snapshot(struct unwinder *w, struct process *p, const struct sampler_snapshot *c,
		       const struct walk_stack stacks[SAMPLER_COPIES])
{
	struct walk_tables tables = {w, slab, w->kernel->rules, UNWIND_RULES_MAX + 1,
				     walk_pc_mask()};
	uint64_t word;

	count(w, stacks);
	if (c->buffer >= SAMPLER_BUFFERS)
		return;
	word = unwind_word(w->store, &p->key, c->generation);
	if (word == 0) {
		/* The store knows one generation of a process, we all of this interval. */
		w->stats.unknown += !unwind_by_file(w, p, c, stacks);
		return;
	}
	walk_snapshot(&tables, c, stacks, word, &w->walk);
	take_walk(w, c);
}

/* The frames of `stack` up to the one that the snapshot begins with, and then its own. */
static void join(struct unwinder *w, const struct sampler_stack *stack, const uint64_t *pcs,
		 const struct sampler_stack *rest, const uint64_t *more,
		 struct sample_table *stacks)
{
	uint32_t have = (uint32_t)stack->n_kernel + stack->n_user, n = rest->n_user;
	struct sampler_stack head = *stack;

	check(have <= ANDIRON_WALK_WORDS); /* sample_table_add */
	have -= stack->n_user > 0;
	if (have + n > ANDIRON_WALK_WORDS)
		n = ANDIRON_WALK_WORDS - have;
	head.n_user = (uint16_t)(have - stack->n_kernel + n);
	head.end = n < rest->n_user ? UNWIND_END_TRUNCATED : rest->end;
	head.id |= SAMPLER_STACK_COMPLETED;
	memcpy(w->joined, &head, sizeof(head));
	memcpy(&w->joined[SAMPLER_STACK_WORDS], pcs, have * sizeof(*pcs));
	memcpy(&w->joined[SAMPLER_STACK_WORDS + have], more, n * sizeof(*more));
	sample_table_add(stacks, w->joined, (SAMPLER_STACK_WORDS + have + n) * sizeof(uint64_t));
}

struct settling {
	struct unwinder *w;
	struct sample_table *stacks;
};

static void settle(void *context, const struct sampler_stack *rest, const uint64_t *more,
		   uint64_t samples)
{
	struct settling *s = context;
	const uint64_t *pcs;
	const struct sampler_stack *stack = sample_table_find(s->stacks, rest->id, &pcs);

	if (stack)
		join(s->w, stack, pcs, rest, more, s->stacks);
}

void unwinder_settle(struct unwinder *w, uint32_t buffer, struct sample_table *stacks)
{
	struct settling s = {w, stacks};

	check(buffer < SAMPLER_BUFFERS);
	sample_table_each(&w->found[buffer], settle, &s);
	sample_table_clear(&w->found[buffer]);
}

const struct sampler_stack *unwinder_find(const struct sample_table *stacks,
					  const struct sampler_stack *stack, const uint64_t **pcs)
{
	const struct sampler_stack *completed =
		sample_table_find(stacks, stack->id | SAMPLER_STACK_COMPLETED, pcs);

	return completed ? completed : stack;
}

void unwinder_tick(struct unwinder *w)
{
	unwind_tick(w->store);
	file_unwind_rest(&w->file_unwind);
}

struct unwind *unwinder_store(struct unwinder *w)
{
	return w->store;
}

void unwinder_get_stats(const struct unwinder *w, struct unwinder_stats *ret)
{
	*ret = w->stats;
	if (w->runtimes)
		ret->runtimes = runtimes_get_counts(w->runtimes);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See native-unwind.h. What the body is surrounded by in the kernel, over copies of stacks. */
#include "ebpf/unwinding/native-unwind.h"

#include "base/check.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define UNWIND_INLINE static inline
#define UNWIND_GLOBAL static

struct surroundings {
	const struct walk_tables *tables;
	const struct walk_stack *stacks; /* SAMPLER_COPIES */
	struct andiron_walk *walk;
};

typedef struct surroundings *unwind_env;

static struct andiron_walk *h_walk_state(unwind_env e)
{
	return e->walk;
}

static const uint8_t *h_slab(unwind_env e, uint32_t i)
{
	return e->tables->slab(e->tables->context, i);
}

static const struct unwind_entry *h_entry(unwind_env e, uint32_t i)
{
	return i < e->tables->n_rules ? &e->tables->rules[i] : NULL;
}

static struct unwind_set *h_rows(unwind_env e, uint32_t i)
{
	return e->tables->rows ? &e->tables->rows[i] : NULL;
}

static struct unwind_chain *h_chain(unwind_env e, uint32_t i)
{
	return e->tables->chains ? &e->tables->chains[i] : NULL;
}

static uint32_t h_read(unwind_env e, void *to, size_t n, uint64_t address)
{
	for (size_t i = 0; i < SAMPLER_COPIES; i++) {
		const struct walk_stack *stack = &e->stacks[i];
		uint64_t offset = address - stack->at;

		if (offset < stack->n && stack->n - offset >= n) {
			memcpy(to, stack->p + offset, n);
			return 0;
		}
	}
	return UNWIND_END_CUT;
}

static uint64_t h_pc_mask(unwind_env e)
{
	return e->tables->pc_mask;
}

static bool h_find(unwind_env e, uint64_t at, __u64 *ret)
{
	uint64_t aux = 0;

	if (!e->tables->find)
		return false;
	*ret = e->tables->find(e->tables->context, at, &aux);
	e->walk->own = aux;
	if (*ret == 0)
		e->walk->end = UNWIND_END_NEW;
	return true;
}

#define UNWIND_FINDS
#include "unwinder/native-stack.h"

/* No program of a runtime can be called here: its code is walked as if nobody had claimed it. Of
 * memory without a file nothing is known but frame pointers, which a compiler of code at run time
 * may use for anything. */
static void step_claimed(struct surroundings *e)
{
	struct andiron_walk *w = e->walk;

	w->end = 0;
	w->native = ANDIRON_WALK_SHOW;
	if (unwind_find(e, w->exact ? w->pc : w->pc - 1) == UNWIND_BY_FRAMES)
		w->end = UNWIND_END_RUNTIME;
	else if (w->end == 0)
		unwind_step(e);
}

void walk_snapshot(const struct walk_tables *tables, const struct sampler_snapshot *snapshot,
		   const struct walk_stack stacks[SAMPLER_COPIES], uint64_t word,
		   struct andiron_walk *w)
{
	struct surroundings e = {tables, stacks, w};
	uint32_t n_own = UINT32_MAX; /* words before what a runtime claims */

	*w = (struct andiron_walk){
		.version = ANDIRON_WALK_VERSION,
		.pc = snapshot->pc,
		.exact = snapshot->exact,
		.known = snapshot->known,
		.space = word,
	};
	check(tables->find || tables->slab);
	memcpy(w->regs, snapshot->regs, sizeof(w->regs));
	unwind_mark(w);
	while (w->end == 0)
		if (unwind_step(&e) != 0 && w->end == UNWIND_END_HAND_OVER) {
			n_own = w->n_words < n_own ? w->n_words : n_own;
			step_claimed(&e);
		}
	check(w->n_words <= ANDIRON_WALK_WORDS);
	/* Such frames are believed where they have led to the thread's entry. */
	if (n_own < UINT32_MAX && w->end != UNWIND_END_COMPLETE) {
		w->n_words = w->n_words < n_own ? w->n_words : n_own;
		w->end = UNWIND_END_RUNTIME;
	}
}

/* x86-64 leaves addresses as they are. arm64 signs return addresses in the bits above those of an
 * address, 48 or with large addresses 52; our own stack is at the top of what there is. */
uint64_t walk_pc_mask(void)
{
#if defined(__aarch64__)
	uintptr_t top = (uintptr_t)__builtin_frame_address(0);

	return (1ull << (top >> 48 ? 52 : 48)) - 1;
#else
	return ~0ull;
#endif
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The two stacks of a thread that runs Go: its goroutine's, and the system's, on which Go calls C
 * and its runtime does what needs room. A walk continues from one to the other, so both are copied.
 *
 * A goroutine is described by a g, a thread by an m; the system's stack has a g too, g0. The
 * current g is in a register while Go's code runs (its internal ABI, "Architecture specifics"), and
 * always in a word of thread-local storage. Only members are read whose offsets Go's assembly,
 * debuggers or linkers rely on, unchanged since Go 1.5; and the g that an m runs, found by its
 * shape.
 *
 * In other programs these words are anything. An address is read only if plain memory is there, and
 * counts only if m and g0 lead to each other. Who forges that has memory of their own copied. */
#pragma once

#include "task-work/snapshot.h"
#include "task-work/vma-list.h"

/* The words of an m: the first is g0. Which one is the goroutine differs by a word or two between
 * versions of Go. Before them are the g that handles signals, and g's that stopped. */
#define GOROUTINE_M_WORDS 32
#define GOROUTINE_M_FIRST 16

_Static_assert((GOROUTINE_M_WORDS & (GOROUTINE_M_WORDS - 1)) == 0, "numbers of words are masked");

/* From where cgocallback left the system's stack to where it saved that position. */
#if defined(__TARGET_ARCH_arm64)
#define GOROUTINE_SAVED 16
#else
#define GOROUTINE_SAVED 0
#endif

struct goroutine_g {
	__u64 low, high; /* its stack */
	__u64 guards[2];
	__u64 panics, defers;
	__u64 m;
	__u64 sp; /* where it was left: 0 or anything else while it runs */
	__u64 pc;
	__u64 self;
};

struct goroutine {
	struct goroutine_g g;      /* read last */
	struct goroutine_g system; /* g0 */
	__u64 words[GOROUTINE_M_WORDS];
	__u64 m;
	__u64 current; /* address of its goroutine, 0: none */
	/* The stack that the walk may go on on; start 0: none */
	__u64 start, limit;
};

static __noinline bool goroutine_read(struct goroutine *r, __u64 at)
{
	return mapping_has(at, sizeof(r->g)) &&
	       bpf_probe_read_user(&r->g, sizeof(r->g), (const void *)at) == 0 &&
	       r->g.low < r->g.high;
}

static __always_inline bool goroutine_holds(const struct goroutine_g *g, __u64 at)
{
	return g->low <= at && at < g->high;
}

/* The end of the stack of the g in Go's register: small ones lie amid the heap. */
static __always_inline __u64 goroutine_limit(struct goroutine *r, const struct sampler_snapshot *c,
					     __u64 sp)
{
	if (c->known >> SNAPSHOT_GO & 1 && goroutine_read(r, c->regs[SNAPSHOT_GO]) &&
	    goroutine_holds(&r->g, sp))
		return r->g.high;
	return ~0ull;
}

/* The current g by thread-local storage, if the program has nothing else in it, as most of Go's. */
static __always_inline __u64 goroutine_storage(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u64 g = 0;
#if defined(__TARGET_ARCH_arm64)
	__u64 at = BPF_CORE_READ(task, thread.uw.tp_value) + 16;
#else
	__u64 at = BPF_CORE_READ(task, thread.fsbase) - 8;
#endif

	if (mapping_has(at, sizeof(g)))
		bpf_probe_read_user(&g, sizeof(g), (const void *)at);
	return g;
}

/* The m that a g belongs to, and its g0. */
static __noinline bool goroutine_thread(struct goroutine *r, __u64 at)
{
	if (!goroutine_read(r, at))
		return false;
	r->m = r->g.m;
	if (!mapping_has(r->m, sizeof(r->words)) ||
	    bpf_probe_read_user(r->words, sizeof(r->words), (const void *)r->m) != 0 ||
	    !goroutine_read(r, r->words[0]) || r->g.m != r->m)
		return false;
	r->system = r->g;
	return true;
}

/* 1 if that word of the m leads to its goroutine. */
static long goroutine_try(__u32 i, struct goroutine **goroutine)
{
	struct goroutine *r = *goroutine;
	__u64 at = r->words[(GOROUTINE_M_FIRST + i) & (GOROUTINE_M_WORDS - 1)];

	if (at == r->words[0] || !goroutine_read(r, at) || r->g.m != r->m || r->g.self != at)
		return 0;
	r->current = at;
	return 1;
}

/* The system's stack from where C called Go; nothing where none did, since what stands there then
 * is the thread's beginning. */
static __always_inline void goroutine_called(struct goroutine *r)
{
	__u64 at = r->system.sp, saved = 0;

	if (!goroutine_holds(&r->system, at) || !mapping_has(at + GOROUTINE_SAVED, sizeof(saved)) ||
	    bpf_probe_read_user(&saved, sizeof(saved), (const void *)(at + GOROUTINE_SAVED)) != 0 ||
	    saved < at || saved > r->system.high)
		return;
	r->limit = mapping_stack_end(at, true);
	r->start = at;
}

/* The goroutine's stack from where it was left. A signal's handler, or a call of the vDSO, does not
 * record where: the frame pointer has it, or it is mostly near the end. */
static __always_inline void goroutine_left(struct goroutine *r, __u64 fp)
{
	__u64 at = r->g.sp, end;

	if (!goroutine_holds(&r->g, at))
		at = fp;
	if (!goroutine_holds(&r->g, at))
		at = r->g.high - r->g.low > SAMPLER_SNAPSHOT_BYTES
			     ? r->g.high - SAMPLER_SNAPSHOT_BYTES
			     : r->g.low;
	end = mapping_end(at, true);
	r->limit = end < r->g.high ? end : r->g.high;
	r->start = end ? at : 0;
}

/* Finds out on which other stack that of a sample may go on, from r->start on up to r->limit. */
static __always_inline void goroutine_find(struct goroutine *r, const struct sampler_snapshot *c)
{
	r->start = 0;
	r->current = 0;
	if (!(c->known >> SNAPSHOT_GO & 1 && goroutine_thread(r, c->regs[SNAPSHOT_GO])) &&
	    !goroutine_thread(r, goroutine_storage()))
		return;
	bpf_loop(GOROUTINE_M_WORDS - GOROUTINE_M_FIRST, goroutine_try, &r, 0);
	if (r->current == 0)
		return;
	if (goroutine_holds(&r->g, c->regs[SNAPSHOT_SP]))
		goroutine_called(r);
	else
		goroutine_left(r, c->regs[SNAPSHOT_FP]);
}

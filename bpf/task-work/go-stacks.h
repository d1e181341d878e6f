/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The two stacks of a thread that runs Go: its goroutine's, and the one that the system gave it, on
 * which Go calls C, and where its runtime does what needs room. A walk goes on from one to the
 * other, so a copy of that which the stack pointer is in is half of it.
 *
 * A goroutine is described by a g, a thread by an m; the thread's own stack has a g too, g0. Which
 * g is current stands in a register while Go's code runs (its internal ABI, "Architecture
 * specifics") and in a word of the thread's local storage always. Read is only what Go's assembly,
 * debuggers or linkers know the place of, so that it has not moved since Go 1.5, and which g an m
 * runs, found by what a g looks like.
 *
 * In other programs all of this is anything: so what a word leads to is read only if it is there
 * and is plain memory, and counts only if m and g0 lead to each other. Whoever forges that has
 * memory of their own copied that no walk looks at. */
#pragma once

#include "task-work/snapshot.h"
#include "task-work/vma-list.h"

/* The words of an m, of which the first is its g0; which one is its goroutine differs by a word or
 * two from one Go to another. What lies before them are a g that handles signals, and places of g's
 * that stopped. */
#define GOROUTINE_M_WORDS 32
#define GOROUTINE_M_FIRST 16

/* Where cgocallback keeps what it changes of the thread's own stack, from where it has left that. */
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

/* Where the stack of the g ends that Go's code keeps in a register: small ones lie amid the heap. */
static __always_inline __u64 goroutine_limit(struct goroutine *r, const struct sampler_snapshot *c,
					     __u64 sp)
{
	if (c->known >> SNAPSHOT_GO & 1 && goroutine_read(r, c->regs[SNAPSHOT_GO]) &&
	    goroutine_holds(&r->g, sp))
		return r->g.high;
	return ~0ull;
}

/* Where the current g stands in local storage: where a program's own has nothing else, as Go's mostly have. */
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

/* The goroutine's stack from where it was left. A signal's handler, or a call of the vDSO, leaves it without saying
 * where: it is in the frame pointer, or mostly near the end. */
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

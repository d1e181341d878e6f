/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Snapshots: what is needed to walk a sample's stack elsewhere, with as much of the stack as is
 * there at once. See struct sampler_snapshot. */
#pragma once

#include "bpfwire/sampler.h"
#include "sampler/shared-maps.h"
#include "bpfwire/unwind-tables.h"

#if defined(__TARGET_ARCH_arm64)
#define SNAPSHOT_SP UNWIND_ARM_SP
#define SNAPSHOT_FP UNWIND_ARM_FP
#define SNAPSHOT_GO 28
#else
#define SNAPSHOT_SP UNWIND_X86_RSP
#define SNAPSHOT_FP UNWIND_X86_RBP
#define SNAPSHOT_GO 14
#endif

/* unwind_generation() of a task; 0 where it has no memory, or exec has not finished it. */
static __always_inline __u64 snapshot_generation(struct task_struct *task)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	__u64 start_code = mm ? BPF_CORE_READ(mm, start_code) : 0;

	return start_code ? unwind_generation(start_code, BPF_CORE_READ(mm, arg_start),
					      BPF_CORE_READ(mm, start_stack))
			  : 0;
}

/* Up to where the stack that `sp` is in can be of use: above the first thread's stand the program's
 * arguments and environment. */
static __always_inline __u64 snapshot_limit(struct task_struct *task, __u64 sp)
{
	__u64 start_stack = BPF_CORE_READ(task, mm, start_stack);

	return sp <= start_stack ? sampler_snapshot_start(start_stack) + SAMPLER_SNAPSHOT_PIECE
				 : ~0ull;
}

/* All of a snapshot but the stack: of this CPU's sample, whose stack record is at w->head. */
static __always_inline int snapshot_fill(struct sampler_snapshot *snapshot, __u32 cpu)
{
	struct andiron_walk *w = bpf_map_lookup_elem(&walks, &cpu);
	struct sampler_cpu *state = bpf_map_lookup_elem(&cpus, &cpu);
	const struct sampler_stack *head;

	if (!w || !state)
		return -1;
	head = (const struct sampler_stack *)(const void *)w->head;
	snapshot->type = SAMPLER_RECORD_SNAPSHOT;
	snapshot->buffer = head->buffer;
	snapshot->id = head->id;
	snapshot->key = state->pending.key.process;
	snapshot->generation = sampler_known_of(state, &snapshot->key)->generation;
	snapshot->pc = w->pc;
	bpf_probe_read_kernel(snapshot->regs, sizeof(snapshot->regs), w->regs);
	snapshot->known = w->known;
	snapshot->exact = w->exact;
	snapshot->end = w->end;
	snapshot->n = 0;
	snapshot->part = 0;
	snapshot->at = sampler_snapshot_start(snapshot->regs[SNAPSHOT_SP]);
	return 0;
}

/* Sends what of the stack is there. */
__noinline int snapshot_now(__u32 cpu)
{
	struct sampler_snapshot *snapshot = bpf_ringbuf_reserve(&ring, sizeof(*snapshot), 0);
	__u64 sp, limit;

	if (!snapshot)
		return 0;
	if (snapshot_fill(snapshot, cpu) != 0) {
		bpf_ringbuf_discard(snapshot, 0);
		return 0;
	}
	sp = sampler_snapshot_start(snapshot->regs[SNAPSHOT_SP]);
	limit = snapshot_limit((struct task_struct *)bpf_get_current_task(), sp);
	for (__u32 i = 0; i < SAMPLER_SNAPSHOT_BYTES; i += SAMPLER_SNAPSHOT_PIECE) {
		if (sp + i >= limit ||
		    bpf_probe_read_user(&snapshot->stack[i], SAMPLER_SNAPSHOT_PIECE,
					(const void *)(sp + i)) != 0)
			break;
		snapshot->n = i + SAMPLER_SNAPSHOT_PIECE;
	}
	bpf_ringbuf_submit(snapshot, BPF_RB_FORCE_WAKEUP);
	return 0;
}

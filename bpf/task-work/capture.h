/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Captures: what is needed to walk a sample's stack elsewhere, with as much of the stack as is
 * there at once. See struct sampler_capture.
 */
#ifndef TASK_WORK_CAPTURE_H
#define TASK_WORK_CAPTURE_H

#include "bpfwire/sampler.h"
#include "sampler/shared-maps.h"
#include "bpfwire/unwind-tables.h"

#if defined(__TARGET_ARCH_arm64)
#define CAPTURE_SP UNWIND_ARM_SP
#define CAPTURE_FP UNWIND_ARM_FP
#define CAPTURE_GO 28
#else
#define CAPTURE_SP UNWIND_X86_RSP
#define CAPTURE_FP UNWIND_X86_RBP
#define CAPTURE_GO 14
#endif

/* unwind_layout() of a task's image; 0 where it has none, or exec has not finished it. */
static __always_inline __u64 capture_layout(struct task_struct *task)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	__u64 start_code = mm ? BPF_CORE_READ(mm, start_code) : 0;

	return start_code ? unwind_layout(start_code, BPF_CORE_READ(mm, arg_start),
					  BPF_CORE_READ(mm, start_stack)) :
			    0;
}

/* Up to where the stack that `sp` is in can be of use: above the first thread's stand the program's arguments
 * and environment. */
static __always_inline __u64 capture_limit(struct task_struct *task, __u64 sp)
{
	__u64 start_stack = BPF_CORE_READ(task, mm, start_stack);

	return sp <= start_stack ? sampler_capture_start(start_stack) + SAMPLER_CAPTURE_PIECE : ~0ull;
}

/* All of a capture but the stack: of this CPU's sample, whose stack record is at w->head. */
static __always_inline int capture_fill(struct sampler_capture *capture, __u32 cpu)
{
	struct andiron_walk *w = bpf_map_lookup_elem(&walks, &cpu);
	struct sampler_cpu *state = bpf_map_lookup_elem(&cpus, &cpu);
	const struct sampler_stack *head;

	if (!w || !state)
		return -1;
	head = (const struct sampler_stack *)(const void *)w->head;
	capture->type = SAMPLER_RECORD_CAPTURE;
	capture->half = head->half;
	capture->id = head->id;
	capture->key = state->pending.key.process;
	capture->layout = sampler_known_of(state, &capture->key)->layout;
	capture->pc = w->pc;
	bpf_probe_read_kernel(capture->regs, sizeof(capture->regs), w->regs);
	capture->known = w->known;
	capture->exact = w->exact;
	capture->end = w->end;
	capture->n = 0;
	capture->part = 0;
	capture->at = sampler_capture_start(capture->regs[CAPTURE_SP]);
	return 0;
}

/* Sends what of the stack is there. */
__noinline int capture_now(__u32 cpu)
{
	struct sampler_capture *capture = bpf_ringbuf_reserve(&ring, sizeof(*capture), 0);
	__u64 sp, limit;

	if (!capture)
		return 0;
	if (capture_fill(capture, cpu) != 0) {
		bpf_ringbuf_discard(capture, 0);
		return 0;
	}
	sp = sampler_capture_start(capture->regs[CAPTURE_SP]);
	limit = capture_limit((struct task_struct *)bpf_get_current_task(), sp);
	for (__u32 i = 0; i < SAMPLER_CAPTURE_BYTES; i += SAMPLER_CAPTURE_PIECE) {
		if (sp + i >= limit ||
		    bpf_probe_read_user(&capture->stack[i], SAMPLER_CAPTURE_PIECE,
					(const void *)(sp + i)) != 0)
			break;
		capture->n = i + SAMPLER_CAPTURE_PIECE;
	}
	bpf_ringbuf_submit(capture, BPF_RB_FORCE_WAKEUP);
	return 0;
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The stack that a signal interrupted, where its handler runs on another (sigaltstack). A walk
 * continues there behind the kernel's frame. That has the interrupted registers, and lies at the
 * upper end of the handler's stack, below the floating-point registers. The size of those differs
 * between machines, so the frame is searched for, downwards, by the words that say which stack the
 * thread has set aside. Signals that interrupt a handler have theirs further down.
 *
 * Sources: include/uapi/asm/ucontext.h and sigcontext.h of both machines;
 * arch/x86/kernel/signal_64.c and arch/arm64/kernel/signal.c, by which both align the frame so that
 * these words are aligned to 16 bytes. */
#pragma once

#include "task-work/vma-list.h"

#define ALTERNATE_STEP  16
#define ALTERNATE_STEPS 1024 /* 16 KiB: with all that AMX or SVE have */

/* From the words on the stack, ucontext.uc_stack, to the interrupted stack pointer. */
#if defined(__TARGET_ARCH_arm64)
#define ALTERNATE_TO_SP 416
#else
#define ALTERNATE_TO_SP 144
#endif

/* stack_t, as the kernel writes it. */
struct alternate_stack {
	__u64 sp;
	__u32 flags, padding;
	__u64 size;
};

struct alternate {
	__u64 sp, size;  /* the stack that the thread has set aside */
	__u64 from, top; /* where the search ends, and where it begins */
	struct alternate_stack stack;
	__u64 interrupted; /* stack pointer; 0: not found */
};

/* 1 if there is nothing more to look for. */
static long alternate_try(__u32 i, struct alternate **alternate)
{
	struct alternate *a = *alternate;
	__u64 at = a->top - (__u64)i * ALTERNATE_STEP;

	if (at < a->from || bpf_probe_read_user(&a->stack, sizeof(a->stack), (const void *)at) != 0)
		return 1;
	if (a->stack.sp != a->sp || a->stack.size != a->size)
		return 0;
	if (bpf_probe_read_user(&a->interrupted, sizeof(a->interrupted),
				(const void *)(at + ALTERNATE_TO_SP)) != 0)
		a->interrupted = 0;
	return 1;
}

/* The stack pointer that a handler at `sp` has interrupted on another stack; 0: none. */
static __always_inline __u64 alternate_interrupted(struct alternate *a, __u64 sp)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u64 limit, end;

	a->sp = BPF_CORE_READ(task, sas_ss_sp);
	a->size = BPF_CORE_READ(task, sas_ss_size);
	a->interrupted = 0;
	limit = a->sp + a->size;
	if (sp < a->sp || sp >= limit)
		return 0;
	end = mapping_end(sp, true);
	if (end < limit)
		limit = end;
	if (limit < sp + ALTERNATE_TO_SP + sizeof(a->interrupted))
		return 0;
	a->from = sp;
	a->top = (limit - ALTERNATE_TO_SP - sizeof(a->interrupted)) & ~(__u64)(ALTERNATE_STEP - 1);
	bpf_loop(ALTERNATE_STEPS, alternate_try, &a, 0);
	return a->interrupted;
}

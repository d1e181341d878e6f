/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel support for task work: a program has a thread run something on its way to user mode.
 * Linux 6.18 has bpf_task_work_schedule_resume_impl(), with a last parameter for the kernel. Later
 * kernels have bpf_task_work_schedule_resume() without it. They still describe the former, which
 * cannot be called.
 */
#ifndef EBPF_KERNEL_TASK_WORK_H
#define EBPF_KERNEL_TASK_WORK_H

enum task_work {
	TASK_WORK_NONE,
	TASK_WORK_AUX,   /* as in 6.18 */
	TASK_WORK_PLAIN, /* later */
};

/* Looks through the names of the kernel's types: a few milliseconds. */
enum task_work task_work_form(void);

#endif

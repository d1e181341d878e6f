/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether and how this kernel lets a program ask a thread to run something on
 * its way back to user mode. Linux 6.18 has bpf_task_work_schedule_resume_impl(), with a
 * last parameter for the kernel's own use; later ones have
 * bpf_task_work_schedule_resume() without it, and keep a description of the former that
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

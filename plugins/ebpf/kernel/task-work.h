/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel support for task work: a program has a thread run something on its way to user mode. Linux
 * 6.18 has bpf_task_work_schedule_resume_impl(), with a last parameter for the kernel. Later
 * kernels have bpf_task_work_schedule_resume() without it. They still describe the former, which
 * cannot be called. */
#pragma once

#include <stddef.h>

struct bpf_object;

/* The bytes of an object: for 6.18, and for later kernels. */
struct task_work_forms {
	const void *(*aux)(size_t *ret_n);
	const void *(*plain)(size_t *ret_n);
};

/* A map that the object shares; descriptors are borrowed. A NULL name ends a list. */
struct task_work_map {
	const char *name;
	int fd;
};

/* Loads the form for this kernel: 0 and the object, the caller's to close, or NULL where there is
 * no task work; or a negative errno. Some 20 ms. */
int task_work_load(const struct task_work_forms *forms, const struct task_work_map *maps,
		   struct bpf_object **ret);

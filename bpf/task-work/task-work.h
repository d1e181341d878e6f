/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Task work: the kernel runs a function in the interrupted thread, on its way back to user mode,
 * where it may sleep. TASK_WORK_AUX is defined for the form that 6.18 has, see
 * plugins/ebpf/kernel/task-work.h. */
#pragma once

typedef int (*bpf_task_work_callback_t)(struct bpf_map *map, void *key, void *value);

/* task_work_ask(work, map, callback): 0, and callback(map, key, value) will run for the value of
 * `map` that `work` is in; or an error. */
#ifdef TASK_WORK_AUX
extern int bpf_task_work_schedule_resume_impl(struct task_struct *task, struct bpf_task_work *work,
					      void *map, bpf_task_work_callback_t callback,
					      void *aux) __ksym;
#define task_work_ask(work, map, callback)                                                         \
	bpf_task_work_schedule_resume_impl(bpf_get_current_task_btf(), work, map, callback, NULL)
#else
extern int bpf_task_work_schedule_resume(struct task_struct *task, struct bpf_task_work *work,
					 void *map, bpf_task_work_callback_t callback) __ksym;
#define task_work_ask(work, map, callback)                                                         \
	bpf_task_work_schedule_resume(bpf_get_current_task_btf(), work, map, callback)
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* See task-work.h. */
#include "ebpf/kernel/task-work.h"

#include "proc/kernel-types.h"

enum task_work task_work_form(void)
{
	if (kernel_types_name("bpf_task_work_schedule_resume"))
		return TASK_WORK_PLAIN;
	return kernel_types_name("bpf_task_work_schedule_resume_impl") ? TASK_WORK_AUX : TASK_WORK_NONE;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See task-work.h. */
#include "ebpf/kernel/task-work.h"

#include "proc/kernel-types.h"

enum taskwork taskwork_form(void)
{
	if (kernel_types_name("bpf_task_work_schedule_resume"))
		return TASKWORK_PLAIN;
	return kernel_types_name("bpf_task_work_schedule_resume_impl") ? TASKWORK_AUX : TASKWORK_NONE;
}

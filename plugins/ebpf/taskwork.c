/* SPDX-License-Identifier: Apache-2.0 */
/* See taskwork.h. */
#include "taskwork.h"

#include <bpf/btf.h>
#include <stdbool.h>

static bool has(const struct btf *kernel, const char *function)
{
	return btf__find_by_name_kind(kernel, function, BTF_KIND_FUNC) > 0;
}

enum taskwork taskwork_form(void)
{
	struct btf *kernel = btf__load_vmlinux_btf();
	enum taskwork form = TASKWORK_NONE;

	if (kernel && has(kernel, "bpf_task_work_schedule_resume"))
		form = TASKWORK_PLAIN;
	else if (kernel && has(kernel, "bpf_task_work_schedule_resume_impl"))
		form = TASKWORK_AUX;
	btf__free(kernel);
	return form;
}

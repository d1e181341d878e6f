/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See taskwork.h. libbpf resolves every function that an object names, called or
 * not, and (before 1.3) refuses the object when one is there with another type,
 * even if weak. Of a pointer it compares what kind of thing it points to: void in 6.18,
 * a structure later.
 */
#include "taskwork.h"

#include <bpf/btf.h>
#include <stddef.h>
#include <stdint.h>

#define WITH_AUX "bpf_task_work_schedule_resume_impl"
#define PLAIN    "bpf_task_work_schedule_resume"

static const struct btf_type *prototype(const struct btf *btf, const char *name)
{
	int32_t id = btf__find_by_name_kind(btf, name, BTF_KIND_FUNC);
	const struct btf_type *function = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
	const struct btf_type *t = function ? btf__type_by_id(btf, function->type) : NULL;

	return t && btf_is_func_proto(t) && btf_vlen(t) > 0 ? t : NULL;
}

static struct btf_param *last_parameter(const struct btf_type *prototype)
{
	return (struct btf_param *)(uintptr_t)btf_params(prototype) + btf_vlen(prototype) - 1;
}

static bool points_to_something(const struct btf *btf, const struct btf_type *prototype)
{
	const struct btf_type *t = btf__type_by_id(btf, last_parameter(prototype)->type);

	return t && btf_is_ptr(t) && t->type != 0;
}

enum taskwork taskwork_fit(const struct btf *program)
{
	struct btf *kernel = btf__load_vmlinux_btf();
	const struct btf_type *ours = prototype(program, WITH_AUX);
	const struct btf_type *theirs = kernel ? prototype(kernel, WITH_AUX) : NULL;
	enum taskwork form = TASKWORK_NONE;

	if (kernel && prototype(kernel, PLAIN))
		form = TASKWORK_PLAIN;
	else if (theirs)
		form = TASKWORK_AUX;
	/* The first parameter points to a structure; any will do. */
	if (ours && theirs && points_to_something(kernel, theirs))
		last_parameter(ours)->type = btf_params(ours)[0].type;
	btf__free(kernel);
	return form;
}

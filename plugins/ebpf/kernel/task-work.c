/* SPDX-License-Identifier: Apache-2.0 */
/* See task-work.h. */
#include "ebpf/kernel/task-work.h"

#include "proc/kernel-types.h"

#include <bpf/libbpf.h>
#include <errno.h>

static const void *bytes_of(const struct task_work_forms *forms, size_t *ret_n)
{
	if (kernel_types_name("bpf_task_work_schedule_resume"))
		return forms->plain(ret_n);
	return kernel_types_name("bpf_task_work_schedule_resume_impl") ? forms->aux(ret_n) : NULL;
}

static int share(struct bpf_object *object, const char *name, int fd)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, name);

	return map ? bpf_map__reuse_fd(map, fd) : -ENOENT;
}

int task_work_load(const struct task_work_forms *forms, const struct task_work_map *maps,
		   struct bpf_object **ret)
{
	size_t n = 0;
	const void *bytes = bytes_of(forms, &n);
	struct bpf_object *object;
	int r = 0;

	*ret = NULL;
	if (!bytes)
		return 0;
	object = bpf_object__open_mem(bytes, n, NULL);
	if (!object)
		return -errno;
	for (; r == 0 && maps->name; maps++)
		r = share(object, maps->name, maps->fd);
	if (r == 0)
		r = bpf_object__load(object);
	if (r == 0)
		*ret = object;
	else
		bpf_object__close(object);
	return r;
}

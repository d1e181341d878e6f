/* SPDX-License-Identifier: Apache-2.0 */
/* See snapshot-program.h. */
#include "ebpf/kernel/snapshot-program.h"

#include "ebpf/kernel/task-work.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stddef.h>

/* Generated, not to our taste. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wcast-qual"
#include "snapshot.skel.h"
#include "snapshot_aux.skel.h"
#pragma GCC diagnostic pop

static int share(struct bpf_object *object, const char *name, int fd)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, name);

	return map ? bpf_map__reuse_fd(map, fd) : -ENOENT;
}

static struct bpf_object *open_form(enum task_work form)
{
	size_t n = 0;
	const void *bytes = form == TASK_WORK_PLAIN ? snapshot_bpf__elf_bytes(&n) :
						     snapshot_aux_bpf__elf_bytes(&n);

	return bpf_object__open_mem(bytes, n, NULL);
}

int snapshot_program_load(const struct snapshot_maps *maps, struct bpf_object **ret)
{
	enum task_work form = task_work_form();
	struct bpf_object *object;
	int r;

	*ret = NULL;
	if (form == TASK_WORK_NONE)
		return 0;
	object = open_form(form);
	if (!object)
		return -errno;
	r = share(object, "cpus", maps->cpus);
	if (r == 0)
		r = share(object, "walks", maps->walks);
	if (r == 0)
		r = share(object, "ring", maps->ring);
	if (r == 0)
		r = bpf_object__load(object);
	if (r != 0) {
		bpf_object__close(object);
		return r;
	}
	*ret = object;
	return 0;
}

int snapshot_program_slots(const struct bpf_object *object)
{
	return bpf_map__fd(bpf_object__find_map_by_name(object, "deferred_snapshot"));
}

struct bpf_program *snapshot_program_of(struct bpf_object *object)
{
	return bpf_object__find_program_by_name(object, "snapshot");
}

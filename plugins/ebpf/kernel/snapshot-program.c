/* SPDX-License-Identifier: Apache-2.0 */
/* See snapshot-program.h. */
#include "ebpf/kernel/snapshot-program.h"

#include "ebpf/kernel/task-work.h"

#include <bpf/libbpf.h>
#include <stddef.h>

/* Generated, not to our taste. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wcast-qual"
#include "snapshot.skel.h"
#include "snapshot_aux.skel.h"
#pragma GCC diagnostic pop

int snapshot_program_load(const struct snapshot_maps *maps, struct bpf_object **ret)
{
	static const struct task_work_forms forms = {snapshot_aux_bpf__elf_bytes,
						     snapshot_bpf__elf_bytes};
	const struct task_work_map shared[] = {
		{"cpus", maps->cpus}, {"walks", maps->walks}, {"ring", maps->ring}, {NULL, -1}};

	return task_work_load(&forms, shared, ret);
}

int snapshot_program_slots(const struct bpf_object *object)
{
	return bpf_map__fd(bpf_object__find_map_by_name(object, "deferred_snapshot"));
}

struct bpf_program *snapshot_program_of(struct bpf_object *object)
{
	return bpf_object__find_program_by_name(object, "snapshot");
}

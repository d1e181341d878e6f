/* SPDX-License-Identifier: Apache-2.0 */
/* See task-work.h. */
#include "ebpf/kernel/task-work.h"

#include "base/check.h"
#include "proc/kernel-types.h"

#include <andiron/bpf/walk.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>

/* Generated, not to our taste. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wcast-qual"
#include "continuation.skel.h"
#include "continuation_aux.skel.h"
#include "snapshot.skel.h"
#include "snapshot_aux.skel.h"
#pragma GCC diagnostic pop

typedef const void *(*bytes_fn)(size_t *ret_n);

static int share_maps(struct bpf_object *object, const struct bpf_object *sampler)
{
	struct bpf_map *map;
	int r = 0;

	bpf_object__for_each_map (map, object) {
		const struct bpf_map *shared =
			bpf_object__find_map_by_name(sampler, bpf_map__name(map));

		if (shared && r == 0)
			r = bpf_map__reuse_fd(map, bpf_map__fd(shared));
	}
	return r;
}

/* `aux` is the form of 6.18. */
static int load(bytes_fn aux, bytes_fn plain, const struct bpf_object *sampler,
		struct bpf_object **ret)
{
	bool later = kernel_types_name("bpf_task_work_schedule_resume");
	struct bpf_object *object;
	const void *bytes;
	size_t n = 0;
	int r;

	if (!later && !kernel_types_name("bpf_task_work_schedule_resume_impl"))
		return 0;
	bytes = later ? plain(&n) : aux(&n);
	object = bpf_object__open_mem(bytes, n, NULL);
	if (!object)
		return -errno;
	r = share_maps(object, sampler);
	if (r == 0)
		r = bpf_object__load(object);
	if (r == 0)
		*ret = object;
	else
		bpf_object__close(object);
	return r;
}

int task_work_load_snapshots(struct task_work *t, const struct bpf_object *sampler)
{
	check(!t->snapshots);
	return load(snapshot_aux_bpf__elf_bytes, snapshot_bpf__elf_bytes, sampler, &t->snapshots);
}

static int program_of(const struct task_work *t, const char *name)
{
	return bpf_program__fd(bpf_object__find_program_by_name(t->continuation, name));
}

static int put(const struct bpf_object *sampler, uint32_t slot, int program)
{
	int programs = bpf_object__find_map_fd_by_name(sampler, "programs");

	check(programs >= 0 && program >= 0);
	return bpf_map_update_elem(programs, &slot, &program, BPF_ANY) == 0 ? 0 : -errno;
}

int task_work_load_continuation(struct task_work *t, const struct bpf_object *sampler)
{
	int r;

	check(!t->continuation);
	r = load(continuation_aux_bpf__elf_bytes, continuation_bpf__elf_bytes, sampler,
		 &t->continuation);
	if (r != 0 || !t->continuation)
		return r;
	r = put(sampler, ANDIRON_WALK_ROUND, program_of(t, "end_round"));
	if (r == 0)
		r = put(sampler, ANDIRON_WALK_CONTINUE, program_of(t, "continuation"));
	if (r != 0) {
		bpf_object__close(t->continuation);
		t->continuation = NULL;
	}
	return r;
}

int task_work_take_faults(struct task_work *t, bool on)
{
	struct error err = ERROR_NULL;

	check(t->continuation);
	perf_clock_close(&t->faults);
	return on ? perf_clock_open_faults(&t->faults, program_of(t, "begin_round"), &err) : 0;
}

void task_work_close(struct task_work *t)
{
	perf_clock_close(&t->faults);
	bpf_object__close(t->continuation);
	bpf_object__close(t->snapshots);
	*t = (struct task_work){0};
}

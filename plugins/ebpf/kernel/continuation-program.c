/* SPDX-License-Identifier: Apache-2.0 */
/* See continuation-program.h. */
#include "ebpf/kernel/continuation-program.h"

#include "ebpf/kernel/perf-clock.h"
#include "ebpf/kernel/task-work.h"

#include <andiron/bpf/walk.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

/* Generated, not to our taste. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wcast-qual"
#include "continuation.skel.h"
#include "continuation_aux.skel.h"
#pragma GCC diagnostic pop

struct continuation_program {
	struct bpf_object *object;
	struct perf_clock faults;
};

static struct bpf_object *open_form(enum task_work form)
{
	size_t n = 0;
	const void *bytes = form == TASK_WORK_PLAIN ? continuation_bpf__elf_bytes(&n) :
						     continuation_aux_bpf__elf_bytes(&n);

	return bpf_object__open_mem(bytes, n, NULL);
}

static int share(struct bpf_object *object, const char *name, int fd)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, name);

	return map ? bpf_map__reuse_fd(map, fd) : -ENOENT;
}

static int share_all(struct bpf_object *object, const struct continuation_maps *maps)
{
	int r = share(object, "cpus", maps->cpus);

	if (r == 0)
		r = share(object, "walks", maps->walks);
	if (r == 0)
		r = share(object, "ring", maps->ring);
	return r == 0 ? share(object, "programs", maps->programs) : r;
}

static int program_of(const struct bpf_object *object, const char *name)
{
	return bpf_program__fd(bpf_object__find_program_by_name(object, name));
}

static int put(int programs, uint32_t slot, int program)
{
	return bpf_map_update_elem(programs, &slot, &program, BPF_ANY) == 0 ? 0 : -errno;
}

static int load(struct continuation_program *o, const struct continuation_maps *maps, enum task_work form)
{
	struct error err = ERROR_NULL;
	int r;

	o->object = open_form(form);
	if (!o->object)
		return -errno;
	r = share_all(o->object, maps);
	if (r == 0)
		r = bpf_object__load(o->object);
	if (r == 0)
		r = put(maps->programs, ANDIRON_WALK_ROUND, program_of(o->object, "end_round"));
	if (r == 0)
		r = perf_clock_open_faults(&o->faults, program_of(o->object, "begin_round"), &err);
	return r == 0 ? put(maps->programs, ANDIRON_WALK_CONTINUE, program_of(o->object, "continuation")) : r;
}

int continuation_program_load(const struct continuation_maps *maps, struct continuation_program **ret)
{
	enum task_work form = task_work_form();
	struct continuation_program *o;
	int r;

	*ret = NULL;
	if (form == TASK_WORK_NONE)
		return 0;
	o = calloc(1, sizeof(*o));
	if (!o)
		return -ENOMEM;
	o->faults = PERF_CLOCK_NULL;
	r = load(o, maps, form);
	if (r == 0)
		*ret = o;
	else
		continuation_program_free(o);
	return r;
}

const struct bpf_object *continuation_program_object(const struct continuation_program *o)
{
	return o->object;
}

void continuation_program_free(struct continuation_program *o)
{
	if (!o)
		return;
	perf_clock_close(&o->faults);
	bpf_object__close(o->object);
	free(o);
}

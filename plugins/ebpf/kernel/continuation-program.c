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

static int program_of(const struct bpf_object *object, const char *name)
{
	return bpf_program__fd(bpf_object__find_program_by_name(object, name));
}

static int put(int programs, uint32_t slot, int program)
{
	return bpf_map_update_elem(programs, &slot, &program, BPF_ANY) == 0 ? 0 : -errno;
}

/* Puts its programs into their slots. */
static int install(struct continuation_program *o, int programs)
{
	struct error err = ERROR_NULL;
	int r = put(programs, ANDIRON_WALK_ROUND, program_of(o->object, "end_round"));

	if (r == 0)
		r = perf_clock_open_faults(&o->faults, program_of(o->object, "begin_round"), &err);
	return r == 0 ? put(programs, ANDIRON_WALK_CONTINUE, program_of(o->object, "continuation"))
		      : r;
}

int continuation_program_load(const struct continuation_maps *maps,
			      struct continuation_program **ret)
{
	static const struct task_work_forms forms = {continuation_aux_bpf__elf_bytes,
						     continuation_bpf__elf_bytes};
	const struct task_work_map shared[] = {{"cpus", maps->cpus},
					       {"walks", maps->walks},
					       {"ring", maps->ring},
					       {"programs", maps->programs},
					       {NULL, -1}};
	struct bpf_object *object;
	struct continuation_program *o;
	int r = task_work_load(&forms, shared, &object);

	*ret = NULL;
	if (r != 0 || !object)
		return r;
	o = calloc(1, sizeof(*o));
	if (!o) {
		bpf_object__close(object);
		return -ENOMEM;
	}
	*o = (struct continuation_program){object, PERF_CLOCK_NULL};
	r = install(o, maps->programs);
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

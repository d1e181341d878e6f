/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The cgroup id of a task in the hierarchy that holds the containers. The helper
 * bpf_get_current_cgroup_id knows the unified hierarchy only, where on v1 and hybrid machines every
 * task is in the root. */
#pragma once

#include "bpfwire/hierarchy.h"
#include "kernel/types.h"

#include <bpf/bpf_core_read.h>

static __always_inline __u64 cgroup_of_subsystem(struct task_struct *task, int subsystem)
{
	struct css_set *set = BPF_CORE_READ(task, cgroups);
	struct cgroup_subsys_state *state = NULL;

	bpf_core_read(&state, sizeof(state), &set->subsys[subsystem]);
	return BPF_CORE_READ(state, cgroup, kn, id);
}

/* `hierarchy` is a constant to the verifier, so one of the four remains. */
static __always_inline __u64 cgroup_of_task(struct task_struct *task, __u32 hierarchy)
{
#define OF(hierarchy_, name)                                                                       \
	if (hierarchy == (hierarchy_) && bpf_core_enum_value_exists(enum cgroup_subsys_id, name))  \
	return cgroup_of_subsystem(task, (int)bpf_core_enum_value(enum cgroup_subsys_id, name))
	OF(CGROUP_HIERARCHY_MEMORY, memory_cgrp_id);
	OF(CGROUP_HIERARCHY_CPU, cpu_cgrp_id);
	OF(CGROUP_HIERARCHY_PIDS, pids_cgrp_id);
#undef OF
	return BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
}

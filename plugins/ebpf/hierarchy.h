/* SPDX-License-Identifier: Apache-2.0 */
/* Which cgroup hierarchy holds containers, where there are several. */
#ifndef EBPF_HIERARCHY_H
#define EBPF_HIERARCHY_H

#include "base/str.h"

#include <stdint.h>

/*
 * SAMPLER_HIERARCHY_* (bpf/sampler.h) for the text of /proc/cgroups: runtimes
 * put containers into every version 1 controller there is, and only without
 * any into the unified hierarchy alone. Pure.
 */
uint32_t hierarchy_of_text(struct str proc_cgroups);

/* The same for this machine; the unified one if that cannot be read. */
uint32_t hierarchy_of_containers(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Which cgroup hierarchy holds the containers, as CGROUP_HIERARCHY_*: with cgroup v2 alone, its
 * one; where v1 controllers are mounted (v1 or hybrid), that of a controller which every runtime
 * uses.
 *
 * Source: /proc/cgroups, cgroups(7): a controller on v2 has hierarchy 0. */
#pragma once

#include "base/str.h"
#include "bpfwire/hierarchy.h"

/* Of this machine; V2 where the kernel does not say. */
uint32_t proc_hierarchy_here(void);
/* From the text of /proc/cgroups; V2 where that says nothing. O(n). */
uint32_t proc_hierarchy(struct str proc_cgroups);

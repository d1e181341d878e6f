/* SPDX-License-Identifier: Apache-2.0 */
/* Which cgroup hierarchy holds the containers: with cgroup v2 alone, its one;
 * where v1 controllers are mounted (v1 or hybrid), that of a controller which
 * every runtime uses. The numbers are those of the kernel programs.
 *
 * Source: /proc/cgroups, cgroups(7): a controller on v2 has hierarchy 0. */
#pragma once

#include "base/str.h"

#define PROC_HIERARCHY_V2     0u
#define PROC_HIERARCHY_MEMORY 1u
#define PROC_HIERARCHY_CPU    2u
#define PROC_HIERARCHY_PIDS   3u

/* From the text of /proc/cgroups; V2 where that says nothing. O(n). */
uint32_t proc_hierarchy(struct str proc_cgroups);

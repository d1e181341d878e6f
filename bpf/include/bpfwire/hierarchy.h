/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which cgroup hierarchy holds the containers, as user space tells the programs when it loads them.
 * lib/proc decides. */
#pragma once

#define CGROUP_HIERARCHY_V2     0u
#define CGROUP_HIERARCHY_MEMORY 1u
#define CGROUP_HIERARCHY_CPU    2u
#define CGROUP_HIERARCHY_PIDS   3u

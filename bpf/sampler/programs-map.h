/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The programs that walks are handed to by tail call: the sampler's, which the programs of task
 * work share (continuation.bpf.c). Snapshots go without, so it is not among the maps of
 * shared-maps.h. */
#pragma once

#include <andiron/bpf/walk.h>

/* ANDIRON_WALK_RESUME, and those of language runtimes. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, ANDIRON_WALK_SLOTS);
	__type(key, __u32);
	__type(value, __u32);
} programs SEC(".maps");

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The two maps that a runtime's program shares with the sampler, which puts its own in their
 * place. Behind <bpf/bpf_helpers.h>, which needs the kernel's types first. */
#pragma once

#include <andiron/bpf/walk.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct andiron_walk);
} walks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, ANDIRON_WALK_SLOTS);
	__type(key, __u32);
	__type(value, __u32);
} programs SEC(".maps");

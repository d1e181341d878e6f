/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The maps that the sampling programs share with those that take snapshots, which are objects of
 * their own (snapshot.bpf.c). User space sizes them in the one and gives them to the other. */
#pragma once

#include "bpfwire/sampler.h"

/* By number of CPU, for all that there may be. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* user space says how many */
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct sampler_cpu));
} cpus SEC(".maps");

/* By number of CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct andiron_walk);
} walks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 * 1024); /* user space says how many */
} ring SEC(".maps");

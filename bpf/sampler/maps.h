/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The maps of the sampling programs. Their contents are described in sampler.h and unwind-tables.h.
 *
 * Each map is a region of kernel memory, cold when a sample comes: its first line costs 0.7 us,
 * another one 0.1 to 0.4. So what every sample needs is in few of them. */
#pragma once

#include "bpfwire/kernel-tables.h"
#include "sampler/programs-map.h"
#include "bpfwire/sampler.h"
#include "sampler/shared-maps.h"
#include "bpfwire/unwind-tables.h"

/* One for each CPU and buffer, of sampler_log_words + SAMPLER_LOG_SPARE words. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, 65536);
} logs SEC(".maps");

/* Written to by user space only, as a barrier: see session_swap. Empty before, since the kernel
 * waits whenever it is put there. */
struct sampler_nothing {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} nothing SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct sampler_nothing);
} barrier SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct sampler_selected);
} selected SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, __u32);
} cgroups SEC(".maps");

/* Forgetting a process costs one more record of it, never a count. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct sampler_process_key);
	__type(value, struct sampler_process_state);
} processes SEC(".maps");

/* SAMPLER_WAITS where waits are sampled. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32); /* thread */
	__type(value, struct sampler_wait);
} waits SEC(".maps");

/* What stacks are walked by: unwind-tables.h. User space fills in the slabs. */
struct sampler_slab {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, UNWIND_SLAB_BYTES + UNWIND_SLAB_SPARE);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, UNWIND_SLABS_MAX);
	__type(key, __u32);
	__array(values, struct sampler_slab);
} slabs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct unwind_common);
} common SEC(".maps");

/* KERNEL_SETS, or one where the kernel's stack is not walked by kernel-stack.h. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct kernel_set);
} kernel_rows SEC(".maps");

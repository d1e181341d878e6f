/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What everybody's first profiler does: both stacks into a stack map, a count by their two ids. The
 * measure that ours is held against. */
#include "kernel/types.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct baseline_key {
	long user, kernel;
};

struct {
	__uint(type, 7 /* BPF_MAP_TYPE_STACK_TRACE */);
	__uint(max_entries, 16384);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, 127 * sizeof(__u64));
} stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct baseline_key);
	__type(value, __u64);
} counts SEC(".maps");

SEC("perf_event")
int baseline(struct bpf_perf_event_data *event)
{
	struct baseline_key key;
	__u64 one = 1, *count;

	if ((__u32)bpf_get_current_pid_tgid() == 0)
		return 0;
	key.user = bpf_get_stackid(event, &stacks, BPF_F_USER_STACK);
	key.kernel = bpf_get_stackid(event, &stacks, 0);
	count = bpf_map_lookup_elem(&counts, &key);
	if (count)
		__sync_fetch_and_add(count, 1);
	else
		bpf_map_update_elem(&counts, &key, &one, BPF_ANY);
	return 0;
}

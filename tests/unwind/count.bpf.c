/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counts samples of the cpu-clock by the name of the thread, and nothing else: what a profiler
 * could have kept of each name. */
#include "kernel/types.h"

#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct count_name {
	char text[16];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct count_name);
	__type(value, __u64);
} counts SEC(".maps");

SEC("perf_event")
int count(struct bpf_perf_event_data *event)
{
	struct count_name name = {};
	__u64 one = 1, *n;

	if ((__u32)bpf_get_current_pid_tgid() == 0)
		return 0;
	bpf_get_current_comm(name.text, sizeof(name.text));
	n = bpf_map_lookup_elem(&counts, &name);
	if (n)
		__sync_fetch_and_add(n, 1);
	else
		bpf_map_update_elem(&counts, &name, &one, BPF_ANY);
	return 0;
}

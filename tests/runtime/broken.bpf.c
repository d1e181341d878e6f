/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A program that the verifier refuses: it does not look whether the walk is there. */
#include "kernel.h"

#include <bpf/bpf_helpers.h>

#include <andiron/bpf/walk.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

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

SEC("perf_event")
int toy(struct bpf_perf_event_data *event)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct andiron_walk *w = bpf_map_lookup_elem(&walks, &cpu);

	w->end = ANDIRON_WALK_GAVE_UP;
	bpf_tail_call(event, &programs, ANDIRON_WALK_RESUME);
	return 0;
}

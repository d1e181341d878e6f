/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Programs that the verifier takes and that are mistaken: one leaves nonsense behind, one does not come back. */
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
int astray(struct bpf_perf_event_data *event)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct andiron_walk *w = bpf_map_lookup_elem(&walks, &cpu);

	if (!w)
		return 0;
	w->end = 255;
	w->n_kernel = 70000;
	w->n_words = ANDIRON_WALK_WORDS + 1000;
	bpf_tail_call(event, &programs, ANDIRON_WALK_RESUME);
	return 0;
}

SEC("perf_event")
int silent(struct bpf_perf_event_data *event)
{
	return 0;
}

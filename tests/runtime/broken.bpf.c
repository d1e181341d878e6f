/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A program that the verifier refuses: it does not look whether the walk is there. */
#include "kernel/types.h"

#include <bpf/bpf_helpers.h>

#include "runtime-kit/walk-maps.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("perf_event")
int toy(struct bpf_perf_event_data *event)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct andiron_walk *w = bpf_map_lookup_elem(&walks, &cpu);

	w->end = ANDIRON_WALK_GAVE_UP;
	bpf_tail_call(event, &programs, ANDIRON_WALK_RESUME);
	return 0;
}

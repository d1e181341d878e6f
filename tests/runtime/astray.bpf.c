/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Programs that the verifier takes and that are mistaken: one leaves nonsense behind, one does not
 * come back. */
#include "kernel/types.h"

#include <bpf/bpf_helpers.h>

#include "runtime-kit/walk-maps.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

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

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Snapshots by task work, as kernels after 6.18 have it: see deferred-snapshot.h. */
#include "kernel/types.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "task-work/deferred-snapshot.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* Called in place of what comes after a sample was counted. */
SEC("perf_event")
int snapshot(struct bpf_perf_event_data *event)
{
	__u32 cpu = bpf_get_smp_processor_id();

	if (!deferred_schedule(cpu))
		snapshot_now(cpu);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What tell_targets tells, as andiron/target-processes.h has it. */
#ifndef EBPF_TARGETS_TARGET_REPORT_ABI_H
#define EBPF_TARGETS_TARGET_REPORT_ABI_H

#include "ebpf/targets/target-report.h"

#include <andiron/target-processes.h>

struct matched {
	const struct andiron_target_processes_sink *sink;
	bool failed; /* memory was short: what was added is not all */
};

/* A tell_fn; its context is a struct matched. */
void matched_add(void *context, const struct told_target *told);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* A target report as andiron/target-processes.h has it. */
#ifndef EBPF_TARGETS_TARGET_REPORT_ABI_H
#define EBPF_TARGETS_TARGET_REPORT_ABI_H

#include "ebpf/targets/target-report.h"

#include <andiron/target-processes.h>

struct target_report_sink {
	const struct andiron_target_processes_sink *sink;
	bool failed; /* memory was short: what was added is not all */
};

/* A target_report_fn; its context is a struct target_report_sink. */
void target_report_add(void *context, const struct target_report *report);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Target report: the processes of each target, and why a target has none. */
#pragma once

#include "ebpf/processes/target-match.h"
#include "ebpf/processes/process.h"
#include "ebpf/unwinding/runtimes.h"

#include <andiron/target-processes.h>

/* A target as it came in. Processes are those sampled recently, by pid. */
struct target_report {
	const struct target_label *labels;
	size_t n_labels;
	const struct process *const *processes;
	size_t n_processes;
	const char *why;           /* there is none; NULL if there is one */
	struct runtimes *runtimes; /* who describe them; or NULL */
};

typedef void (*target_report_fn)(void *context, const struct target_report *target);

/* Calls fn for each target, in order, and for the default one last; all is borrowed for the call.
 * Reads NODE_NAME, as discovery.kubernetes does. 0 or -ENOMEM (nothing reported).
 * O(targets + processes · log). */
int target_report_each(struct matcher *m, const struct processes *processes,
		       struct runtimes *runtimes, target_report_fn fn, void *context);

/* How many targets there are, and how many stand for a process. Uses their n_processes. */
void target_report_count(struct matcher *m, const struct processes *processes,
			 uint64_t *ret_targets, uint64_t *ret_matched);

/* Reports as andiron/target-processes.h has them. */
struct target_report_sink {
	const struct andiron_target_processes_sink *sink;
	bool failed; /* memory was short: what was added is not all */
};

/* A target_report_fn; its context is a struct target_report_sink. Strings are borrowed; arrays live
 * for the call. */
void target_report_add(void *context, const struct target_report *report);

/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of the profiler as metrics. Alloy's component has none of its own. */
#include "java/metrics.h"

#include "abi/metrics.h"

#define COUNT(member) ABI_COUNTER(struct profiler_counts, member)
#define GAUGE(member) ABI_GAUGE(struct profiler_counts, member)

void metrics_add(const struct profiler_counts *counts, const struct andiron_metric_sink *sink)
{
	static const struct abi_metric_row rows[] = {
		{"andiron_java_targets", GAUGE(targets), "Targets that are given."},
		{"andiron_java_jvms", GAUGE(attached), "JVMs that are profiled."},
		{"andiron_java_jvms_refusing", GAUGE(failing),
		 "JVMs that cannot be profiled; the status of the targets says why."},
		{"andiron_java_recordings_total", COUNT(recordings),
		 "Recordings that were sent on."},
		{"andiron_java_recorded_bytes_total", COUNT(bytes), "Bytes of these."},
		{"andiron_java_failures_total", COUNT(failures),
		 "Attempts that failed, and recordings that were not whole."},
		{"andiron_java_lost_recordings_total", COUNT(lost_recordings),
		 "Recordings that were lost for want of memory."},
	};

	abi_metrics(sink, rows, sizeof(rows) / sizeof(*rows), counts);
}

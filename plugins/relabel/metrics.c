/* SPDX-License-Identifier: Apache-2.0 */
/* See metrics.h. */
#include "relabel/metrics.h"

#include "abi/metrics.h"
#include "relabel/relabel.h"

void relabel_metrics(const struct relabel *relabel, const struct andiron_metric_sink *sink)
{
	static const struct abi_metric_row rows[] = {
		{"andiron_relabel_input_targets", ABI_GAUGE(struct relabel_totals, rows),
		 "Targets that come in."},
		{"andiron_relabel_output_targets", ABI_GAUGE(struct relabel_totals, kept),
		 "Targets that the rules keep."},
		{"andiron_relabel_evaluations_total", ABI_COUNTER(struct relabel_totals, evaluated),
		 "Targets that the rules have worked on."},
		{"andiron_relabel_too_large_total", ABI_COUNTER(struct relabel_totals, large),
		 "Targets whose labels the rules made too large."},
	};
	struct relabel_totals totals;

	relabel_totals(relabel, &totals);
	abi_metrics(sink, rows, sizeof(rows) / sizeof(*rows), &totals);
}

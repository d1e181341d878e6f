/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in metrics.h. */
#include "relabel/metrics.h"

void metrics_get(const struct relabel *relabel, struct metric ret[N_METRICS])
{
	struct relabel_totals t;

	relabel_totals(relabel, &t);
	ret[0] = (struct metric){"andiron_relabel_input_targets", "Targets that come in.", false,
				 (double)t.rows};
	ret[1] = (struct metric){"andiron_relabel_output_targets", "Targets that the rules keep.",
				 false, (double)t.kept};
	ret[2] = (struct metric){"andiron_relabel_evaluations_total",
				 "Targets that the rules have worked on.", true,
				 (double)t.evaluated};
	ret[3] = (struct metric){"andiron_relabel_too_large_total",
				 "Targets whose labels the rules made too large.", true,
				 (double)t.large};
}

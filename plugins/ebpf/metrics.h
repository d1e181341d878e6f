/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of the sampler. Names are Alloy's where Alloy has them. */
#pragma once

#include "ebpf/engine.h"

struct metric {
	const char *name;
	const char *help;
	const char *label, *text; /* a label and its value, or NULL */
	bool counter;
	double value;
};

typedef void (*metric_fn)(void *context, const struct metric *metric);

/* Calls fn for each. */
void metrics_each(const struct engine_stats *stats, metric_fn fn, void *context);

/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of discovery.relabel. */
#pragma once

#include "relabel/relabel.h"

struct metric {
	const char *name, *help;
	bool counter; /* otherwise a gauge */
	double value;
};

#define N_METRICS 4

/* All of them, as they are now. */
void metrics_get(const struct relabel *relabel, struct metric ret[N_METRICS]);

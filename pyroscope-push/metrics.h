/* SPDX-License-Identifier: Apache-2.0 */
/* A writer's figures by name, as Prometheus wants them. Names are Alloy's where it has one; another
 * writer's begin with its own name. */
#pragma once

#include "pyroscope-push/writer.h"

struct push_metric {
	const char *name, *help;
	bool gauge;
	const char *endpoint; /* NULL: of the writer */
	const char *reason;   /* NULL: none */
	double value;
};

/* Calls `add` with each figure, those of one name together. Strings live for the call. */
void metrics_list(const struct writer *w, void (*add)(void *context, const struct push_metric *m),
		  void *context);

/* SPDX-License-Identifier: Apache-2.0 */
/* A writer's figures by name, as Prometheus wants them. Names are Alloy's where it has one; another
 * writer's begin with its own name. */
#pragma once

#include "pyroscope-push/writer.h"

struct andiron_metric_sink;

/* Adds each figure, those of one name together. */
void metrics_add(const struct writer *w, const struct andiron_metric_sink *sink);

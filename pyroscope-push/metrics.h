/* SPDX-License-Identifier: Apache-2.0 */
/* A writer's figures by name, as Prometheus wants them. Names are Alloy's where it has one; another
 * writer's begin with its own name. */
#pragma once

#include "pyroscope-push/writer.h"

struct andiron_metric_sink;

/* Adds each figure, those of one name together. `metrics` of component.h; `self` is a writer. */
void metrics_add(void *self, const struct andiron_metric_sink *sink);

/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of the sampler. Names are Alloy's where Alloy has them. */
#pragma once

#include "ebpf/engine.h"

struct andiron_metric_sink;

void metrics_add(const struct engine_stats *stats, const struct andiron_metric_sink *sink);

/* SPDX-License-Identifier: Apache-2.0 */
/* What the sampler tells of itself. Names are Alloy's where Alloy has them. */
#ifndef EBPF_METRICS_H
#define EBPF_METRICS_H

#include "engine.h"

#include <andiron/component.h>

void metrics_add(const struct engine_stats *stats, const struct andiron_metric_sink *sink);

#endif

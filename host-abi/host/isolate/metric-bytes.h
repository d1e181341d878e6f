/* SPDX-License-Identifier: Apache-2.0 */
/* A component's metrics as bytes, for a host that is told them. */
#pragma once

#include "base/buf.h"

#include <andiron/component.h>

#define METRIC_LABELS 16 /* more of one metric are left out */

/* Appends a metric, or nothing where there is no room: failure shows in the buffer. */
void metric_bytes_put(struct buf *b, const struct andiron_metric *metric);
/* Adds each of them to the sink, up to the first that is none. */
void metric_bytes_each(struct str bytes, const struct andiron_metric_sink *sink);

/* SPDX-License-Identifier: Apache-2.0 */
/* The metrics of pyroscope.java. */
#pragma once

#include "java/profiler.h"

struct andiron_metric_sink;

void metrics_add(const struct profiler_counts *counts, const struct andiron_metric_sink *sink);

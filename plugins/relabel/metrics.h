/* SPDX-License-Identifier: Apache-2.0 */
/* discovery.relabel's metrics. */
#pragma once

struct andiron_metric_sink;
struct relabel;

/* O(1) */
void relabel_metrics(const struct relabel *relabel, const struct andiron_metric_sink *sink);

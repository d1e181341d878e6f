/* SPDX-License-Identifier: Apache-2.0 */
/* Values as collectd takes them: under "andiron", by types that its types.db has, so that whoever
 * receives them by network knows them too. All calls from any thread. */
#pragma once

#include "agents/collectd/settings.h"
#include "agents/kit/cpu-usage.h"
#include "agents/kit/own-cost.h"

/* total_time_in_ms of service and target, at the time of the sum. */
void values_put_cpu(const struct cpu_usage_sum *sum);

/* total_time_in_ms-own_threads and -own_children. */
void values_put_own_cost(const struct own_cost *cost);

/* What is chosen of these metrics (Prometheus's text): a counter as `derive`, one of seconds as
 * total_time_in_ms, a gauge as `gauge`. The instance is the name without "andiron_" and "_total",
 * and the values of the labels behind it. */
void values_put_metrics(const char *text, const settings_texts *wanted);

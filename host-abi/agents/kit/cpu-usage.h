/* SPDX-License-Identifier: Apache-2.0 */
/* CPU time by service and target, added up over batches.
 *
 * A service is what the label service_name says; a target is one set of labels within it. Sums only
 * grow, so that whoever misses a report misses nothing. There are at most `max_series` of them:
 * what has had no sample for ten minutes is forgotten, and what finds no room counts for the
 * service "other".
 *
 * Not thread-safe: batches come one at a time. */
#pragma once

#include <andiron/batch.h>

/* Longest name, without the zero: what collectd keeps of one. */
#define CPU_USAGE_NAME 127

struct cpu_usage;

/* One sum. `target` is "" for the whole service. Names have no "/" and no control characters, and
 * at most CPU_USAGE_NAME bytes. */
struct cpu_usage_sum {
	const char *service;
	const char *target;
	int64_t cpu_ns;
	int64_t end_ns;      /* CLOCK_REALTIME: when it was true */
	int64_t interval_ns; /* how long a batch is */
};
typedef void (*cpu_usage_fn)(void *context, const struct cpu_usage_sum *sum);

/* `labels` are those whose values name a target; without any, all that do not begin with two
 * underscores do, as "name=value". Borrowed. NULL when memory is short. */
struct cpu_usage *cpu_usage_new(char *const *labels, size_t n_labels, uint32_t max_series);
void cpu_usage_free(struct cpu_usage *u);

/* Adds a batch and reports the sums that it has changed; of the others those that were last
 * reported more than one and a half of its length ago, so that a service that sleeps is not taken
 * for one that is gone. A sum is reported once for one time: batches that end together are, but for
 * the first, in the next report. 0, -EINVAL for a batch that is malformed, -ENOMEM for one that was
 * not counted as a whole. O(rows + sums). */
int cpu_usage_add(struct cpu_usage *u, const struct andiron_batch *batch, cpu_usage_fn report,
		  void *context);

/* SPDX-License-Identifier: Apache-2.0 */
/* Records for Fluent Bit: msgpack as its log events are, [[EventTime] map] one after the other.
 * Threads of andiron's add, Fluent Bit's takes; what nobody takes is bounded, and counted. */
#pragma once

#include "agents/kit/cpu-usage.h"
#include "agents/kit/exposition.h"
#include "base/buf.h"

#include <pthread.h>

#define RECORDS_BYTES ((size_t)4 << 20)

struct records {
	pthread_mutex_t lock;
	struct buf bytes;
	uint64_t dropped; /* since the last take */
};

void records_init(struct records *r);
void records_fini(struct records *r);

/* {kind: "cpu", service, target, cpu_ms}, at the time of the sum. [any] */
void records_add_cpu(struct records *r, const struct cpu_usage_sum *sum);

/* {kind: "metric", name, labels, value}, labels as Prometheus writes them. [any] */
void records_add_metric(struct records *r, const struct exposition_sample *sample, int64_t time_ns);

/* All that there are, to be freed; NULL: none, or memory was short and they stay. If some were
 * dropped there is one more record, {kind: "dropped", records}. [any] */
void *records_take(struct records *r, size_t *ret_n);

/* SPDX-License-Identifier: Apache-2.0 */
/* A component's metrics, for its verb `metrics` (andiron/component.h). Nothing is kept: each call
 * adds one or more series to the sink. [loop]. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct andiron_metric_sink;

struct abi_metric {
	const char *name, *help;
	double value;
	bool gauge; /* otherwise a counter */
	/* Sorted by key. A label without a value is left out. */
	struct {
		const char *key, *value;
	} labels[2];
};

void abi_metric(const struct andiron_metric_sink *sink, const struct abi_metric *m);

/* Adds one series for each of n words, the value of label `key`, with the number beside it. A word
 * that is NULL has none. `m` says the rest. */
void abi_metric_family(const struct andiron_metric_sink *sink, struct abi_metric m, const char *key,
		       const char *const *words, const uint64_t *values, size_t n);

/* A metric without labels whose value is a member of a struct:
 *
 *     static const struct abi_metric_row rows[] = {
 *             {"andiron_x_files", ABI_GAUGE(struct x_totals, files), "Files that are known."},
 *     }; */
struct abi_metric_row {
	const char *name;
	bool gauge;
	uint8_t type; /* of the member: ABI_VALUE_* */
	size_t offset;
	const char *help;
};

#define ABI_VALUE_U32    1
#define ABI_VALUE_U64    2
#define ABI_VALUE_DOUBLE 3

/* clang-format off */
#define ABI_VALUE(type, member)                                                                    \
	_Generic(((const type *)0)->member, uint32_t: ABI_VALUE_U32, uint64_t: ABI_VALUE_U64,      \
		 double: ABI_VALUE_DOUBLE), offsetof(type, member)
/* clang-format on */
#define ABI_COUNTER(type, member) false, ABI_VALUE(type, member)
#define ABI_GAUGE(type, member)   true, ABI_VALUE(type, member)

/* The row as a metric, with its member of the struct at `base`. */
struct abi_metric abi_metric_of(const struct abi_metric_row *row, const void *base);

/* Adds a metric for each of n rows. */
void abi_metrics(const struct andiron_metric_sink *sink, const struct abi_metric_row *rows,
		 size_t n, const void *base);

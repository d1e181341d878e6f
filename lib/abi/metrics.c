/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in metrics.h. */
#include "abi/metrics.h"

#include "abi/value.h"
#include "base/check.h"

#include <andiron/component.h>

#include <string.h>

void abi_metric(const struct andiron_metric_sink *sink, const struct abi_metric *m)
{
	uint32_t kind = m->gauge ? ANDIRON_METRIC_GAUGE : ANDIRON_METRIC_COUNTER;
	struct andiron_kv labels[2];
	uint32_t n = 0;

	_Static_assert(sizeof(m->labels) / sizeof(m->labels[0]) == 2, "as many as there are here");
	check(m->name && m->help);
	for (size_t i = 0; i < 2; i++)
		if (m->labels[i].value)
			labels[n++] = (struct andiron_kv){abi_str_of(str_of(m->labels[i].key)),
							  abi_str_of(str_of(m->labels[i].value))};
	check(n < 2 || strcmp(m->labels[0].key, m->labels[1].key) < 0);
	sink->add(sink->self,
		  &(struct andiron_metric){m->name, m->help, kind, n, labels, m->value});
}

void abi_metric_family(const struct andiron_metric_sink *sink, struct abi_metric m, const char *key,
		       const char *const *words, const uint64_t *values, size_t n)
{
	m.labels[0].key = key;
	for (size_t i = 0; i < n; i++) {
		m.labels[0].value = words[i];
		m.value = (double)values[i];
		if (words[i])
			abi_metric(sink, &m);
	}
}

static double value_at(const struct abi_metric_row *row, const void *base)
{
	const char *at = (const char *)base + row->offset;
	uint32_t small;
	uint64_t large;
	double number;

	switch (row->type) {
	case ABI_VALUE_U32:
		memcpy(&small, at, sizeof(small));
		return small;
	case ABI_VALUE_U64:
		memcpy(&large, at, sizeof(large));
		return (double)large;
	default:
		check(row->type == ABI_VALUE_DOUBLE);
		memcpy(&number, at, sizeof(number));
		return number;
	}
}

struct abi_metric abi_metric_of(const struct abi_metric_row *row, const void *base)
{
	return (struct abi_metric){row->name, row->help, value_at(row, base), row->gauge};
}

void abi_metrics(const struct andiron_metric_sink *sink, const struct abi_metric_row *rows,
		 size_t n, const void *base)
{
	for (size_t i = 0; i < n; i++) {
		const struct abi_metric m = abi_metric_of(&rows[i], base);

		abi_metric(sink, &m);
	}
}

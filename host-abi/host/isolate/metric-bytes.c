/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in metric-bytes.h. Texts end with NUL, as the names of andiron/component.h do. */
#include "host/isolate/metric-bytes.h"

#include <string.h>

struct numbers {
	uint32_t kind, n_labels;
	double value;
};

static void put_text(struct buf *b, const char *p, size_t n)
{
	buf_append(b, p, n);
	buf_putc(b, 0);
}

void metric_bytes_put(struct buf *b, const struct andiron_metric *metric)
{
	struct numbers n = {metric->kind, metric->n_labels, metric->value};
	size_t before = b->n;

	n.n_labels = n.n_labels < METRIC_LABELS ? n.n_labels : METRIC_LABELS;
	buf_append(b, &n, sizeof(n));
	put_text(b, metric->name, strlen(metric->name));
	put_text(b, metric->help, metric->help ? strlen(metric->help) : 0);
	for (uint32_t i = 0; i < n.n_labels; i++) {
		put_text(b, metric->labels[i].key.ptr, metric->labels[i].key.len);
		put_text(b, metric->labels[i].value.ptr, metric->labels[i].value.len);
	}
	if (b->failed)
		b->n = before;
}

static const char *next_text(struct str *rest)
{
	const char *text = rest->p;
	size_t n = str_find(*rest, 0);

	if (n >= rest->n)
		return NULL;
	*rest = str_skip(*rest, n + 1);
	return text;
}

static bool next(struct str *rest, struct andiron_metric *ret, struct andiron_kv *labels)
{
	struct numbers n;

	if (rest->n < sizeof(n))
		return false;
	memcpy(&n, rest->p, sizeof(n));
	*rest = str_skip(*rest, sizeof(n));
	ret->name = next_text(rest);
	ret->help = ret->name ? next_text(rest) : NULL;
	if (!ret->help || n.n_labels > METRIC_LABELS)
		return false;
	for (uint32_t i = 0; i < n.n_labels; i++) {
		const char *key = next_text(rest), *value = key ? next_text(rest) : NULL;

		if (!value)
			return false;
		labels[i] = (struct andiron_kv){{key, strlen(key)}, {value, strlen(value)}};
	}
	ret->kind = n.kind;
	ret->n_labels = n.n_labels;
	ret->labels = labels;
	ret->value = n.value;
	return true;
}

void metric_bytes_each(struct str bytes, const struct andiron_metric_sink *sink)
{
	struct andiron_kv labels[METRIC_LABELS];
	struct andiron_metric metric;

	while (next(&bytes, &metric, labels))
		sink->add(sink->self, &metric);
}

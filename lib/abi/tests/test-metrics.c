/* SPDX-License-Identifier: Apache-2.0 */
/* A component's metrics as the host's sink gets them. */
#include "abi/metrics.h"

#include "base/buf.h"
#include "testing/test.h"

#include <andiron/component.h>

struct figures {
	uint32_t small;
	uint64_t large;
	double mean;
};

static void put(void *self, const struct andiron_metric *m)
{
	struct buf *out = self;

	buf_printf(out, "%s %u %g", m->name, m->kind, m->value);
	for (uint32_t i = 0; i < m->n_labels; i++)
		buf_printf(out, " %.*s=%.*s", (int)m->labels[i].key.len, m->labels[i].key.ptr,
			   (int)m->labels[i].value.len, m->labels[i].value.ptr);
	buf_printf(out, "\n");
}

/* A row reads the member that it names, by the member's type. */
TEST(rows_read_members)
{
	static const struct abi_metric_row rows[] = {
		{"small", ABI_GAUGE(struct figures, small), "A uint32_t."},
		{"large", ABI_COUNTER(struct figures, large), "A uint64_t."},
		{"mean", ABI_GAUGE(struct figures, mean), "A double."},
	};
	struct buf out = BUF_NULL;
	const struct andiron_metric_sink sink = {sizeof(sink), 0, &out, put};

	abi_metrics(&sink, rows, 3, &(struct figures){7, UINT64_C(1) << 40, 0.5});
	expect_str(buf_str(&out), "small 2 7\nlarge 1 1.09951e+12\nmean 2 0.5\n");
	buf_free(&out);
}

/* A label without a value is left out, and a word that is NULL has no series. */
TEST(labels_without_a_value_are_left_out)
{
	static const char *const words[] = {"x", NULL, "z"};
	static const uint64_t values[] = {1, 2, 3};
	struct buf out = BUF_NULL;
	const struct andiron_metric_sink sink = {sizeof(sink), 0, &out, put};

	abi_metric(&sink,
		   &(struct abi_metric){"m", "Help.", 1, .labels = {{"a", NULL}, {"b", "y"}}});
	abi_metric_family(&sink, (struct abi_metric){"f", "Help."}, "k", words, values, 3);
	expect_str(buf_str(&out), "m 1 1 b=y\nf 1 1 k=x\nf 1 3 k=z\n");
	buf_free(&out);
}

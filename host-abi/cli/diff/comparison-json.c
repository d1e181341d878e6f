/* SPDX-License-Identifier: Apache-2.0 */
/* The comparison as JSON. Contract in comparison.h. */
#include "cli/diff/comparison.h"

#include "base/json.h"

#include <errno.h>
#include <inttypes.h>

static void put_key(struct buf *out, const char *key, struct str value)
{
	buf_printf(out, "\"%s\":", key);
	json_put_str(out, value);
}

static void put_side(const struct comparison *c, const char *key, int side, struct buf *out)
{
	const struct input *in = &c->inputs[side];

	buf_printf(out, "\"%s\":{", key);
	put_key(out, "file", str_of(c->names[side]));
	buf_printf(out, ",\"sum\":%" PRId64 ",\"duration_ns\":%" PRId64, c->diff.sum[side],
		   in->p->duration_ns);
	if (c->diff.weight[side] > 0)
		buf_printf(out, ",\"samples\":%.0f", c->diff.samples[side]);
	else
		buf_str_append(out, STR(",\"samples\":null"));
	if (in->is_cpu)
		buf_printf(out, ",\"cpu_ns\":%" PRId64 "},\n ", in->cpu_ns);
	else
		buf_str_append(out, STR(",\"cpu_ns\":null},\n "));
}

static void put_measure(const struct comparison *c, const char *key, const struct diff_measure *m,
			struct buf *out)
{
	buf_printf(out, ",\"%s\":{\"before\":%.6f,\"after\":%.6f,\"significant\":%s}", key,
		   diff_share(&c->diff, m, DIFF_BEFORE), diff_share(&c->diff, m, DIFF_AFTER),
		   m->changed ? "true" : "false");
}

int comparison_json(struct comparison *c, struct buf *out)
{
	const struct profile *p = c->inputs[DIFF_BEFORE].p;

	if (diff_sort(&c->diff, DIFF_TOTAL) < 0)
		return -ENOMEM;
	buf_putc(out, '{');
	put_side(c, "before", DIFF_BEFORE, out);
	put_side(c, "after", DIFF_AFTER, out);
	put_key(out, "shown", p->types[p->default_type].type);
	buf_putc(out, ',');
	put_key(out, "unit", p->types[p->default_type].unit);
	buf_printf(out, ",\"tested\":%s,\"z\":%.4f,\"n_functions\":%zu,\n \"functions\":[",
		   c->diff.tested ? "true" : "false", c->diff.limit, c->diff.n);
	for (size_t i = 0; i < c->diff.n && i < c->limit; i++) {
		const struct diff_row *row = &c->diff.rows[i];

		buf_str_append(out, i ? STR(",\n  {") : STR("\n  {"));
		put_key(out, "function", row->name);
		buf_putc(out, ',');
		put_key(out, "file", row->module);
		buf_putc(out, ',');
		put_key(out, "source", row->source);
		put_measure(c, "self", &row->measures[DIFF_SELF], out);
		put_measure(c, "total", &row->measures[DIFF_TOTAL], out);
		buf_putc(out, '}');
	}
	buf_str_append(out, STR("]}\n"));
	return out->failed ? -ENOMEM : 0;
}

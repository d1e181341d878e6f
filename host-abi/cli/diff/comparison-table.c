/* SPDX-License-Identifier: Apache-2.0 */
/* The comparison as a table for people. Contract in comparison.h. */
#include "cli/diff/comparison.h"

#include "cli/report/shown.h"

#include "pprof/merge.h"

#include <errno.h>
#include <inttypes.h>

static void put_side(const struct comparison *c, int side, struct buf *out)
{
	static const char *const titles[] = {"before    ", "after     "};
	const struct input *in = &c->inputs[side];
	char sum[32];

	buf_str_append(out, str_of(titles[side]));
	shown_text(out, str_of(c->names[side]), 0);
	buf_str_append(out, STR("  "));
	if (c->diff.weight[side] > 0)
		buf_printf(out, "%.0f samples, ", c->diff.samples[side]);
	if (in->is_cpu) {
		shown_cores(out, in->cpu_ns, in->p->duration_ns);
	} else {
		shown_amount(sum, sizeof(sum), c->diff.sum[side],
			     in->p->types[in->p->default_type].unit);
		buf_printf(out, "%s in all", sum);
	}
	buf_putc(out, '\n');
}

static size_t n_changed(const struct diff *d)
{
	size_t n = 0;

	for (size_t i = 0; i < d->n; i++)
		n += d->rows[i].measures[DIFF_SELF].changed ||
		     d->rows[i].measures[DIFF_TOTAL].changed;
	return n;
}

static void put_head(const struct comparison *c, struct buf *out)
{
	const struct profile *p = c->inputs[DIFF_BEFORE].p;
	const char *empty = comparison_empty(c);

	put_side(c, DIFF_BEFORE, out);
	put_side(c, DIFF_AFTER, out);
	buf_str_append(out, STR("shares    of the "));
	shown_text(out, p->types[p->default_type].type, 40);
	buf_str_append(out, STR(" of each profile; a change is in points of percent\n"));
	buf_printf(out, "changed   %zu of %zu functions", n_changed(&c->diff), c->diff.n);
	if (empty) {
		buf_str_append(out, STR(": nothing can be compared, "));
		shown_text(out, str_of(empty), 0);
		buf_str_append(out, STR(" has no samples\n"));
	} else if (!c->diff.tested) {
		buf_str_append(out, STR("; chance is not ruled out, as samples are not counted\n"));
	} else if (comparison_error(c) > 0.9) {
		buf_str_append(out, STR("; too few samples for any change to show\n"));
	} else {
		buf_printf(out, "; at 10%% of all, a change shows from %.2f points on (z = %.2f)\n",
			   100 * comparison_error(c), c->diff.limit);
	}
}

static void put_row(const struct comparison *c, const struct diff_row *row, int measure,
		    struct buf *out)
{
	const struct diff_measure *m = &row->measures[measure];
	struct str module = call_tree_base_name(row->source.n ? row->source : row->module);

	buf_printf(out, "%8.2f%% %8.2f%% %+9.2f   %s   ",
		   100 * diff_share(&c->diff, m, DIFF_BEFORE),
		   100 * diff_share(&c->diff, m, DIFF_AFTER), 100 * diff_growth(&c->diff, m),
		   m->changed ? "               " : "not significant");
	shown_text(out, row->name, 0);
	if (module.n && row->name.n && row->name.p[0] != '[') {
		bool bracket = module.p[0] == '[';

		buf_str_append(out, bracket ? STR("  ") : STR("  ["));
		shown_text(out, module, 0);
		buf_str_append(out, bracket ? STR("") : STR("]"));
	}
	buf_putc(out, '\n');
}

static int put_table(struct comparison *c, int measure, const char *title, struct buf *out)
{
	if (diff_sort(&c->diff, measure) < 0)
		return -ENOMEM;
	buf_printf(out, "\n%s\n%9s %9s %9s   %-15s   function\n", title, "before", "after",
		   "change", "");
	for (size_t i = 0, shown = 0; i < c->diff.n && shown < c->limit; i++) {
		const struct diff_measure *m = &c->diff.rows[i].measures[measure];

		if (m->value[DIFF_BEFORE] == 0 && m->value[DIFF_AFTER] == 0)
			continue;
		put_row(c, &c->diff.rows[i], measure, out);
		shown++;
	}
	return 0;
}

int comparison_table(struct comparison *c, struct buf *out)
{
	int r = 0;

	put_head(c, out);
	if (c->diff.n)
		r = put_table(c, DIFF_SELF, "Most changed by self", out);
	if (c->diff.n && r == 0)
		r = put_table(c, DIFF_TOTAL, "Most changed by total", out);
	return r < 0 || out->failed ? -ENOMEM : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in comparison.h. */
#include "cli/diff/comparison.h"

#include "cli/report/shown.h"

#include "base/error.h"
#include "export/flame.h"
#include "pprof/merge.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

/* Shares are quotients, so that of 14 % less 9 % is a little more than 5 %. */
#define ROUNDING 1e-12

static void complain(const struct error *err)
{
	struct buf text = BUF_NULL;

	shown_text(&text, err->code ? str_of(err->text) : STR("out of memory"), 0);
	fprintf(stderr, "andiron diff: %.*s\n", STR_FMT(buf_str(&text)));
	buf_free(&text);
}

/* What one shows, the other must have. */
static int show_same(struct comparison *c, struct error *err)
{
	struct profile *a = c->inputs[DIFF_BEFORE].p, *b = c->inputs[DIFF_AFTER].p;

	if (profile_show_like(b, c->names[DIFF_AFTER], a, c->names[DIFF_BEFORE], NULL) == 0)
		return 0;
	if (profile_show_like(a, c->names[DIFF_BEFORE], b, c->names[DIFF_AFTER], NULL) == 0)
		return 0;
	return profile_show_like(b, c->names[DIFF_AFTER], a, c->names[DIFF_BEFORE], err);
}

bool comparison_read(struct comparison *c, const char *before, const char *after, size_t limit)
{
	struct error err = ERROR_NULL;
	int r;

	const char *const paths[DIFF_SIDES] = {before, after};

	*c = (struct comparison){.limit = limit};
	for (int side = 0; side < DIFF_SIDES; side++) {
		c->names[side] = input_name(paths[side]);
		if (!input_read(&c->inputs[side], "diff", &paths[side], 1))
			return false;
	}
	r = show_same(c, &err);
	if (r == 0)
		r = diff_build(c->inputs[DIFF_BEFORE].p, c->inputs[DIFF_AFTER].p, &c->diff);
	if (r < 0)
		complain(&err);
	return r == 0;
}

void comparison_fini(struct comparison *c)
{
	diff_fini(&c->diff);
	for (int side = 0; side < DIFF_SIDES; side++)
		input_fini(&c->inputs[side]);
}

const char *comparison_empty(const struct comparison *c)
{
	for (int side = 0; side < DIFF_SIDES; side++)
		if (c->diff.sum[side] <= 0)
			return c->names[side];
	return NULL;
}

double comparison_error(const struct comparison *c)
{
	const double *n = c->diff.samples;

	return c->diff.limit * sqrt(0.1 * 0.9 * (1 / n[DIFF_BEFORE] + 1 / n[DIFF_AFTER]));
}

int comparison_page(const struct comparison *c, struct buf *out)
{
	struct flame_pair pair = {.limit = c->diff.limit};
	struct flame_caption caption = {.pair = &pair};
	char title[256];

	for (int side = 0; side < DIFF_SIDES; side++) {
		pair.profiles[side] = c->inputs[side].p;
		pair.names[side] = call_tree_base_name(str_of(c->names[side]));
		pair.weight[side] = c->diff.weight[side];
	}
	if (str_eq(pair.names[DIFF_BEFORE], pair.names[DIFF_AFTER])) /* folders tell them apart */
		for (int side = 0; side < DIFF_SIDES; side++)
			pair.names[side] = str_of(c->names[side]);
	snprintf(title, sizeof(title), "%.*s → %.*s", STR_FMT(str_first(pair.names[0], 100)),
		 STR_FMT(str_first(pair.names[1], 100)));
	caption.title = str_of(title);
	return flame_write(c->diff.tree, pair.profiles[DIFF_AFTER], &caption, out);
}

bool comparison_grown(const struct comparison *c, double limit, struct growth *ret)
{
	struct growth found = {0};
	size_t n = 0;

	for (size_t i = 0; i < c->diff.n; i++) {
		const struct diff_row *row = &c->diff.rows[i];
		bool grown = false;

		for (int k = 0; k < DIFF_MEASURES && row->is_code; k++) {
			const struct diff_measure *m = &row->measures[k];
			double growth = diff_growth(&c->diff, m);

			if (!m->changed || growth <= limit + ROUNDING)
				continue;
			grown = true;
			if (!found.row || k < found.measure ||
			    (k == found.measure &&
			     growth > diff_growth(&c->diff, &found.row->measures[k])))
				found = (struct growth){.row = row, .measure = k};
		}
		n += grown;
	}
	if (!n)
		return false;
	*ret = found;
	ret->n_others = n - 1;
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in diff.h. */
#include "export/diff.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/search.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* How many of a profile's samples one of the tree's counts stands for. */
static double weigh(const struct profile *p)
{
	size_t type;

	if (call_tree_sample_type(p, &type))
		return 1;
	if (p->period > 0 && str_eq(p->period_type.unit, p->types[p->default_type].unit))
		return 1 / (double)p->period;
	return 0;
}

static void add(struct diff_measure *m, int side, int64_t value, double samples)
{
	m->value[side] = pprof_sum(m->value[side], value);
	m->samples[side] += samples;
}

/* A row for each frame of the tree. */
static int count(struct diff *d)
{
	const struct call_tree *t = d->tree;
	size_t n = t->frames.ends.n;
	_cleanup_(freep) uint32_t *reached = calloc(n, sizeof(*reached)); /* 1 + the last leaf */

	d->rows = calloc(n, sizeof(*d->rows));
	if (!reached || !d->rows)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->counts.n; i++) {
		const struct leaf *leaf = call_tree_leaf(t, i);
		int side = (int)leaf->side;
		int64_t value = t->counts.p[i].value;
		double samples = (double)t->counts.p[i].samples * d->weight[side];
		uint32_t node = leaf->node;

		add(&d->rows[call_tree_node(t, node)->frame].measures[DIFF_SELF], side, value,
		    samples);
		while (node) {
			const struct node *step = call_tree_node(t, node);

			check(step->parent < node);
			if (reached[step->frame] != i + 1)
				add(&d->rows[step->frame].measures[DIFF_TOTAL], side, value,
				    samples);
			reached[step->frame] = i + 1;
			node = step->parent;
		}
		d->sum[side] = pprof_sum(d->sum[side], value);
		d->samples[side] += samples;
	}
	for (uint32_t i = 0; i < n; i++) {
		struct diff_row *row = &d->rows[d->n];

		if (!reached[i])
			continue;
		*row = d->rows[i];
		row->is_code = call_tree_frame(t, i)->kind != FRAME_MARKER;
		row->name = intern_get(&t->strings, call_tree_frame(t, i)->name);
		row->module = intern_get(&t->strings, call_tree_frame(t, i)->module);
		row->source = intern_get(&t->strings, call_tree_frame(t, i)->source);
		d->n++;
	}
	return 0;
}

static double z_of(const struct diff *d, const struct diff_measure *m)
{
	const double *x = m->samples, *n = d->samples;
	double fewest = n[0] < n[1] ? n[0] : n[1], p;

	if (n[0] <= 0 || n[1] <= 0 || x[0] < 0 || x[1] < 0)
		return 0;
	p = (x[0] + x[1]) / (n[0] + n[1]);
	if (fewest * p < DIFF_MIN_EXPECTED || fewest * (1 - p) < DIFF_MIN_EXPECTED)
		return 0;
	return (x[1] / n[1] - x[0] / n[0]) / sqrt(p * (1 - p) * (1 / n[0] + 1 / n[1]));
}

/* How probable a |z| of this size is where nothing has changed. */
static double chance(double z)
{
	return erfc(z / sqrt(2));
}

static int largest_first(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return compare(y, x);
}

/* The |z| that is as improbable. */
static double improbable(double wanted)
{
	double low = 0, high = 40;

	for (int i = 0; i < 60; i++) {
		double middle = (low + high) / 2;

		if (chance(middle) > wanted)
			low = middle;
		else
			high = middle;
	}
	return high;
}

static int test(struct diff *d)
{
	_cleanup_(freep) double *all = calloc(d->n * DIFF_MEASURES + 1, sizeof(*all));
	size_t n = 0, k;

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < d->n; i++)
		for (int m = 0; m < DIFF_MEASURES; m++) {
			struct diff_measure *measure = &d->rows[i].measures[m];

			measure->z = d->tested ? z_of(d, measure) : 0;
			if (measure->samples[0] + measure->samples[1] > 0)
				all[n++] = fabs(measure->z);
		}
	qsort(all, n, sizeof(*all), largest_first);
	k = n;
	while (k && chance(all[k - 1]) > DIFF_FALSE_SHARE * (double)k / (double)n)
		k--;
	d->limit = improbable(DIFF_FALSE_SHARE * (double)(k ? k : 1) / (double)(n ? n : 1));
	if (k && all[k - 1] < d->limit)
		d->limit = all[k - 1];
	for (size_t i = 0; i < d->n; i++)
		for (int m = 0; m < DIFF_MEASURES; m++) {
			struct diff_measure *measure = &d->rows[i].measures[m];

			measure->changed = d->tested ? fabs(measure->z) >= d->limit
						     : fabs(diff_growth(d, measure)) > 0;
		}
	return 0;
}

int diff_build(const struct profile *before, const struct profile *after, struct diff *ret)
{
	int r;

	*ret = (struct diff){.weight = {weigh(before), weigh(after)}};
	ret->tested = ret->weight[DIFF_BEFORE] > 0 && ret->weight[DIFF_AFTER] > 0;
	r = call_tree_build_pair(before, after, &ret->tree);
	if (r == 0)
		r = count(ret);
	return r < 0 ? r : test(ret);
}

void diff_fini(struct diff *d)
{
	call_tree_free(d->tree);
	free(d->rows);
	*d = (struct diff){0};
}

double diff_share(const struct diff *d, const struct diff_measure *m, int side)
{
	return d->sum[side] > 0 ? (double)m->value[side] / (double)d->sum[side] : 0;
}

double diff_growth(const struct diff *d, const struct diff_measure *m)
{
	return diff_share(d, m, DIFF_AFTER) - diff_share(d, m, DIFF_BEFORE);
}

/* A row with its key: qsort takes no context. */
struct sorted {
	bool changed;
	double growth;
	struct diff_row row;
};

static int by_growth(const void *pa, const void *pb)
{
	const struct sorted *a = pa, *b = pb;

	return compare(b->changed, a->changed) ?: compare(b->growth, a->growth)
			       ?: str_cmp(a->row.name, b->row.name)
			       ?: str_cmp(a->row.source, b->row.source);
}

int diff_sort(struct diff *d, int measure)
{
	_cleanup_(freep) struct sorted *list = calloc(d->n + 1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < d->n; i++) {
		const struct diff_measure *m = &d->rows[i].measures[measure];

		list[i] = (struct sorted){m->changed, fabs(diff_growth(d, m)), d->rows[i]};
	}
	qsort(list, d->n, sizeof(*list), by_growth);
	for (size_t i = 0; i < d->n; i++)
		d->rows[i] = list[i].row;
	return 0;
}

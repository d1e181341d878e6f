/* SPDX-License-Identifier: Apache-2.0 */
/* Shares of two profiles, what is chance and what is not, and functions of two builds. */
#include "export/diff.h"
#include "pprof/tests/read-back.h"
#include "testing/test.h"

#include <errno.h>
#include <math.h>

/* One leaf below "main", on a machine that samples at this period. */
struct spec {
	const char *leaf;
	int64_t samples;
};

struct build {
	const char *program;
	int64_t period;
	struct spec specs[4];
	bool uncounted; /* time alone, without a count of samples */
};

static uint32_t add_location(struct pprof_encoder *e, const char *program, const char *name)
{
	struct pprof_mapping m = {.file = pprof_add_string(e, str_of(program))};
	struct pprof_function f = {.name = pprof_add_string(e, str_of(name))};
	struct pprof_line line = {.function = pprof_add_function(e, &f)};
	struct pprof_location l = {.mapping = pprof_add_mapping(e, &m), .lines = &line};

	l.n_lines = 1;
	l.address = 0x1000 + line.function;
	return pprof_failed(e) ? 0 : pprof_add_location(e, &l);
}

static int make(const struct build *b, struct profile **ret)
{
	struct pprof_encoder *e = pprof_encoder_new();
	struct pprof_head head = {.time_ns = 1, .duration_ns = 1, .period = b->period};
	uint32_t stack[2];

	if (!e)
		return -ENOMEM;
	if (!b->uncounted)
		pprof_add_type(e, pprof_add_string(e, STR("samples")),
			       pprof_add_string(e, STR("count")));
	pprof_add_type(e, pprof_add_string(e, STR("cpu")), pprof_add_string(e, STR("nanoseconds")));
	stack[1] = add_location(e, b->program, "main");
	for (int i = 0; i < 4 && b->specs[i].leaf; i++) {
		int64_t time = b->specs[i].samples * b->period;
		int64_t values[2] = {b->uncounted ? time : b->specs[i].samples, time};

		stack[0] = add_location(e, b->program, b->specs[i].leaf);
		if (!pprof_failed(e))
			pprof_add_sample(e, &(struct pprof_sample){stack, NULL, values, 2, 0});
	}
	head.period_type = pprof_add_string(e, STR("cpu"));
	head.period_unit = pprof_add_string(e, STR("nanoseconds"));
	return read_back(e, &head, ret);
}

static int compare_builds(const struct build *before, const struct build *after, struct diff *ret)
{
	struct profile *a = NULL, *b = NULL;
	int r = make(before, &a);

	*ret = (struct diff){0};
	if (r == 0)
		r = make(after, &b);
	if (r == 0)
		r = diff_build(a, b, ret);
	profile_free(a);
	profile_free(b);
	return r;
}

static const struct diff_row *find(const struct diff *d, const char *name)
{
	const struct diff_row *found = NULL;

	for (size_t i = 0; i < d->n; i++)
		if (str_is(d->rows[i].name, name)) {
			expect(!found);
			found = &d->rows[i];
		}
	return found;
}

static const struct build old = {
	"/opt/1/shop", 10, {{"parse.isra.0", 100}, {"sum", 880}, {"rare", 20}}, false};
static const struct build new = {
	"/opt/2/shop2", 1000, {{"parse", 400}, {"sum.cold", 1566}, {"rare", 34}}, false};

/* 10% → 20% of 1000 and 2000 samples is no chance; 2% → 1.7% may be. */
static int grown(void *context)
{
	const struct diff_measure *m;
	struct diff d;
	int r = compare_builds(&old, &new, &d);

	(void)context;
	if (r == 0)
		r = diff_sort(&d, DIFF_SELF);
	if (r == 0) {
		expect(d.tested);
		expect_eq(d.n, 4);
		expect_str(d.rows[0].name, "parse");
		m = &find(&d, "parse")->measures[DIFF_SELF];
		expect(m->changed);
		expect_eq(lround(1000 * diff_share(&d, m, DIFF_BEFORE)), 100);
		expect_eq(lround(1000 * diff_share(&d, m, DIFF_AFTER)), 200);
		/* p = 500/3000: 0.1 / sqrt(p(1-p)(1/1000 + 1/2000)) */
		expect_eq(lround(1000 * m->z), 6928);
		expect(!find(&d, "rare")->measures[DIFF_SELF].changed);
		expect(!find(&d, "main")->measures[DIFF_TOTAL].changed);
		expect(find(&d, "sum")->measures[DIFF_TOTAL].z < 0);
	}
	diff_fini(&d);
	return r;
}

TEST(a_growth_is_found_across_builds_and_periods_under_failing_allocations)
{
	test_each_failing_allocation(grown, NULL);
}

/* A single sample on the short side would have a z of 31. */
TEST(few_samples_prove_nothing)
{
	const struct build large = {"/shop", 10, {{"sum", 100000}}, false};
	const struct build small = {"/shop", 10, {{"sum", 99}, {"once", 1}}, false};
	struct diff d;

	expect_eq(compare_builds(&large, &small, &d), 0);
	expect(!find(&d, "once")->measures[DIFF_SELF].changed);
	expect_eq(lround(find(&d, "once")->measures[DIFF_SELF].z), 0);
	diff_fini(&d);
}

/* Time in whole periods has samples, whether they are counted or not. */
TEST(samples_are_made_of_time_where_none_are_counted)
{
	struct build a = old, b = new;
	struct diff d;

	a.uncounted = b.uncounted = true;
	expect_eq(compare_builds(&a, &b, &d), 0);
	expect(d.tested);
	expect_eq(lround(d.samples[DIFF_AFTER]), 2000);
	expect_eq(lround(1000 * find(&d, "parse")->measures[DIFF_SELF].z), 6928);
	diff_fini(&d);
	a.period = 0;
	a.specs[0].samples = 1;
	expect_eq(compare_builds(&a, &b, &d), 0);
	expect(!d.tested);
	diff_fini(&d);
}

TEST(nothing_against_something)
{
	const struct build none = {"/shop", 10, {{NULL, 0}}, false};
	struct diff d;

	expect_eq(compare_builds(&none, &new, &d), 0);
	expect_eq(d.sum[DIFF_BEFORE], 0);
	expect(!find(&d, "parse")->measures[DIFF_SELF].changed);
	diff_fini(&d);
	expect_eq(compare_builds(&none, &none, &d), 0);
	expect_eq(d.n, 0);
	diff_fini(&d);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Several profiles as one: no value, label or function of any of them is lost or mixed up. */
#include "base/buf.h"
#include "pprof/encode.h"
#include "pprof/merge.h"
#include "pprof/tests/read-back.h"
#include "testing/test.h"

#include <errno.h>

struct spec {
	const char *function;
	int64_t samples, period, time_ns, duration_ns;
	bool counts_last; /* samples behind the time, and not before */
	bool heap;
};

static void add_types(struct pprof_encoder *e, const struct spec *s)
{
	struct {
		const char *type, *unit;
	} types[2] = {{"samples", "count"}, {"cpu", "nanoseconds"}};

	if (s->heap) {
		pprof_add_type(e, pprof_add_string(e, STR("inuse_space")),
			       pprof_add_string(e, STR("bytes")));
		return;
	}
	for (int i = 0; i < 2; i++) {
		int k = s->counts_last ? 1 - i : i;

		pprof_add_type(e, pprof_add_string(e, str_of(types[k].type)),
			       pprof_add_string(e, str_of(types[k].unit)));
	}
}

static int make(const struct spec *s, struct profile **ret)
{
	struct pprof_encoder *e = pprof_encoder_new();
	struct pprof_head head = {
		.time_ns = s->time_ns, .duration_ns = s->duration_ns, .period = s->period};
	struct pprof_mapping m = {.start = 0x1000, .limit = 0x2000};
	struct pprof_function f = {0};
	struct pprof_line line = {.line = 7};
	struct pprof_location l = {.address = 0x1234, .lines = &line, .n_lines = 1};
	struct pprof_label label = {0};
	int64_t values[2] = {s->samples, s->samples * s->period};
	uint32_t at;

	if (!e)
		return -ENOMEM;
	if (s->counts_last) {
		values[0] = values[1];
		values[1] = s->samples;
	}
	add_types(e, s);
	m.file = pprof_add_string(e, STR("/bin/shop"));
	l.mapping = pprof_add_mapping(e, &m);
	f.name = pprof_add_string(e, str_of(s->function));
	line.function = pprof_add_function(e, &f);
	at = pprof_add_location(e, &l);
	label.key = pprof_add_string(e, STR("of"));
	label.text = pprof_add_string(e, str_of(s->function));
	if (!pprof_failed(e))
		pprof_add_sample(e, &(struct pprof_sample){&at, &label, values, 1, 1});
	head.period_type = pprof_add_string(e, STR("cpu"));
	head.period_unit = pprof_add_string(e, STR("nanoseconds"));
	return read_back(e, &head, ret);
}

static int merged(const struct spec *specs, size_t n, struct profile **ret, struct error *err)
{
	static const char *const names[] = {"a.pb", "b.pb", "c.pb"};
	struct profile *parts[3] = {NULL};
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = make(&specs[i], &parts[i]);
	if (r == 0)
		return profile_merge(parts, names, n, ret, err);
	for (size_t i = 0; i < n; i++)
		profile_free(parts[i]);
	return r;
}

static int64_t value_of(const struct profile *p, const char *function, size_t type)
{
	int64_t sum = 0;

	for (size_t i = 0; i < p->n_samples; i++) {
		const struct profile_sample *s = &p->samples[i];
		const struct profile_location *l = &p->locations[p->frames[s->frame_start]];
		struct str name = p->functions[p->lines[l->line_start].function].name;

		expect(str_eq(profile_label(p, s, STR("of"))->text, name));
		expect_str(p->mappings[l->mapping].file, "/bin/shop");
		if (str_is(name, function))
			sum += p->values[i * p->n_types + type];
	}
	return sum;
}

static const struct spec three[] = {
	{"f", 5, 10, 1000, 100, false, false},
	{"g", 7, 30, 1050, 100, true, false}, /* overlaps the first */
	{"f", 2, 10, 2000, 50, false, false}, /* begins later */
};

static int merge_three(void *context)
{
	struct profile *p;
	int64_t cpu;
	int r = merged(three, 3, &p, NULL);

	(void)context;
	if (r < 0)
		return r;
	expect_eq(p->n_types, 2);
	expect_str(p->types[p->default_type].type, "cpu");
	expect_eq(p->n_samples, 3);
	expect_eq(value_of(p, "f", 0), 7);
	expect_eq(value_of(p, "f", 1), 70);
	expect_eq(value_of(p, "g", 0), 7);
	expect_eq(value_of(p, "g", 1), 210);
	expect_eq(p->period, 0);
	expect_eq(p->time_ns, 1000);
	expect_eq(p->duration_ns, 200);
	expect(profile_cpu_time(p, &cpu));
	expect_eq(cpu, 280);
	profile_free(p);
	return 0;
}

TEST(values_and_windows_of_all_parts_survive_failing_allocations)
{
	test_each_failing_allocation(merge_three, NULL);
}

/* Where one does not say when it was taken, nobody knows what overlaps. */
TEST(durations_are_summed_without_times)
{
	const struct spec specs[] = {{"f", 1, 10, 0, 100, false, false},
				     {"f", 1, 10, 1050, 100, false, false}};
	struct profile *p = NULL;

	expect_eq(merged(specs, 2, &p, NULL), 0);
	expect_eq(p->time_ns, 0);
	expect_eq(p->duration_ns, 200);
	expect_eq(p->period, 10);
	profile_free(p);
}

TEST(one_part_is_itself)
{
	struct profile *p = NULL;

	expect_eq(merged(three, 1, &p, NULL), 0);
	expect_eq(p->n_samples, 1);
	profile_free(p);
}

TEST(what_shows_something_else_is_refused_by_name)
{
	const struct spec specs[] = {three[0], {"f", 1, 10, 1, 1, false, true}};
	struct error err = ERROR_NULL;
	struct profile *p = NULL;

	expect_eq(merged(specs, 2, &p, &err), -EINVAL);
	expect(str_search(str_of(err.text), STR("b.pb does not have")) < sizeof(err.text));
	expect(str_search(str_of(err.text), STR("inuse_space in bytes")) < sizeof(err.text));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles looked over, and written in parts: the counts are the file's, and no value is lost. */
#include "base/buf.h"
#include "pprof/encode.h"
#include "pprof/scan.h"
#include "pprof/split.h"
#include "testing/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define N_SAMPLES 40

/* A heap profile: two types, a stack of two named frames and a label for each sample. */
static int make(struct buf *out, int level)
{
	struct pprof_encoder *e = pprof_encoder_new();
	struct pprof_head head = {.time_ns = 1000, .duration_ns = 5, .period = 512};
	struct pprof_mapping m = {.start = 0x400000, .limit = 0x500000};
	uint32_t mapping;
	int r;

	if (!e)
		return -ENOMEM;
	pprof_add_type(e, pprof_add_string(e, STR("objects")), pprof_add_string(e, STR("count")));
	pprof_add_type(e, pprof_add_string(e, STR("space")), pprof_add_string(e, STR("bytes")));
	m.file = pprof_add_string(e, STR("/bin/shop"));
	mapping = pprof_add_mapping(e, &m);
	for (uint32_t i = 0; i < N_SAMPLES && !pprof_failed(e); i++) {
		char name[32];
		struct pprof_function f = {0};
		struct pprof_line line = {.line = i + 1};
		struct pprof_location l = {0x400000 + i, mapping, 1, &line};
		struct pprof_label label = {.key = pprof_add_string(e, STR("bytes")), .number = i};
		int64_t values[2] = {i + 1, (i + 1) * 100};
		uint32_t stack[2];

		snprintf(name, sizeof(name), "main.allocate_%u", i);
		f.name = pprof_add_string(e, str_of(name));
		line.function = pprof_add_function(e, &f);
		stack[0] = pprof_add_location(e, &l);
		l.address = 0x400fff;
		line.line = 1;
		f.name = pprof_add_string(e, STR("main.main"));
		line.function = pprof_add_function(e, &f);
		stack[1] = pprof_add_location(e, &l);
		pprof_add_sample(e, &(struct pprof_sample){stack, &label, values, 2, 1});
	}
	head.period_type = pprof_add_string(e, STR("space"));
	head.period_unit = pprof_add_string(e, STR("bytes"));
	r = pprof_finish(e, &head, level, out, NULL);
	pprof_encoder_free(e);
	return r;
}

TEST(a_scan_counts_what_servers_limit)
{
	struct buf raw = BUF_NULL, gz = BUF_NULL;
	struct pprof_scan s;

	expect_eq(make(&raw, 0), 0);
	expect_eq(make(&gz, 6), 0);
	expect_eq(pprof_scan(buf_str(&raw), 1 << 20, &s, NULL), 0);
	expect_eq(s.raw_bytes, raw.n);
	expect_eq(pprof_scan(buf_str(&gz), raw.n, &s, NULL), 0);
	expect_eq(s.raw_bytes, raw.n);
	expect_eq(s.n_types, 2);
	expect_eq(s.n_samples, N_SAMPLES);
	expect_eq(s.time_ns, 1000);
	expect_eq(s.duration_ns, 5);
	expect(s.has_period_type);
	expect_eq(pprof_scan(buf_str(&gz), raw.n - 1, &s, NULL), -E2BIG);
	expect_eq(pprof_scan(buf_str(&raw), raw.n - 1, &s, NULL), -E2BIG);
	buf_free(&raw);
	buf_free(&gz);
}

static void expect_refused(struct str bytes, const char *word)
{
	struct error err = ERROR_NULL;
	struct pprof_scan s;

	expect_eq(pprof_scan(bytes, 1 << 20, &s, &err), -EBADMSG);
	if (!strstr(err.text, word))
		test_fail(__FILE__, __LINE__, "\"%s\" does not say %s", err.text, word);
}

/* What a target answers instead of a profile is told by name. */
TEST(what_is_no_profile_is_refused)
{
	struct buf gz = BUF_NULL;

	expect_eq(make(&gz, 6), 0);
	expect_refused(STR_NULL, "empty");
	expect_refused(STR("<!DOCTYPE html><html>"), "HTML");
	expect_refused(STR("heap profile: 1: 2 [3: 4] @"), "debug=1");
	expect_refused(STR("FLR\0\0\2"), "Java");
	expect_refused(STR("\1\2\3"), "something else");
	for (size_t n = 1; n < gz.n; n++) {
		struct pprof_scan s;

		expect_eq(pprof_scan(str_first(buf_str(&gz), n), 1 << 20, &s, NULL), -EBADMSG);
	}
	buf_free(&gz);
}

struct sums {
	int64_t values[2], labels, addresses;
	uint32_t n_parts, n_samples, most;
	size_t raw;
};

static int take(void *context, struct str pprof, size_t raw)
{
	struct sums *s = context;
	struct pprof_scan scan;
	struct profile *p;
	int r = profile_decode(pprof, &p, NULL);

	if (r < 0)
		return r;
	if (pprof_scan(pprof, 1 << 20, &scan, NULL) == 0)
		expect_eq(scan.raw_bytes, raw);
	expect_eq(p->time_ns, 7000 + s->n_parts);
	expect_str(p->period_type.type, "space");
	for (size_t i = 0; i < p->n_samples; i++) {
		const struct profile_label *label =
			profile_label(p, &p->samples[i], STR("bytes"));
		const struct profile_location *leaf =
			&p->locations[p->frames[p->samples[i].frame_start]];

		expect(label != NULL);
		s->labels += label ? label->number : 0;
		s->values[0] += p->values[i * 2];
		s->values[1] += p->values[i * 2 + 1];
		s->addresses += (int64_t)leaf->address - 0x400000;
		expect_str(p->mappings[leaf->mapping].file, "/bin/shop");
		expect_eq(leaf->n_lines, 1);
	}
	s->n_parts++;
	s->n_samples += (uint32_t)p->n_samples;
	s->most = p->n_samples > s->most ? (uint32_t)p->n_samples : s->most;
	s->raw = raw > s->raw ? raw : s->raw;
	profile_free(p);
	return 0;
}

static int split(void *context)
{
	struct sums *s = context;
	struct pprof_split how = {.max_samples = 7,
				  .max_raw = 1 << 20,
				  .time_ns = 7000,
				  .level = 1,
				  .part = take,
				  .context = s};
	struct buf gz = BUF_NULL;
	struct profile *p;
	int r;

	*s = (struct sums){0};
	r = make(&gz, 1);
	if (r == 0)
		r = profile_decode(buf_str(&gz), &p, NULL);
	buf_free(&gz);
	if (r < 0)
		return r;
	r = pprof_write_parts(p, &how);
	profile_free(p);
	return r;
}

static void expect_all(const struct sums *s)
{
	expect_eq(s->n_samples, N_SAMPLES);
	expect_eq(s->values[0], N_SAMPLES * (N_SAMPLES + 1) / 2);
	expect_eq(s->values[1], 100 * N_SAMPLES * (N_SAMPLES + 1) / 2);
	expect_eq(s->labels, N_SAMPLES * (N_SAMPLES - 1) / 2);
	expect_eq(s->addresses, N_SAMPLES * (N_SAMPLES - 1) / 2);
}

TEST(parts_add_up_to_the_whole)
{
	struct sums s;

	test_each_failing_allocation(split, &s);
	expect_eq(split(&s), 0);
	expect_all(&s);
	expect_eq(s.n_parts, 6);
	expect_eq(s.most, 7);
}

/* A part's tables are its own, so bytes bound a part too. */
TEST(parts_are_small)
{
	struct sums s = {0};
	struct pprof_split how = {.max_samples = 1000,
				  .max_raw = 700,
				  .time_ns = 7000,
				  .level = 1,
				  .part = take,
				  .context = &s};
	struct buf gz = BUF_NULL;
	struct profile *p;

	expect_eq(make(&gz, 1), 0);
	expect_eq(profile_decode(buf_str(&gz), &p, NULL), 0);
	expect_eq(pprof_write_parts(p, &how), 0);
	expect_all(&s);
	expect(s.n_parts > 2);
	expect(s.raw < 800);
	profile_free(p);
	buf_free(&gz);
}

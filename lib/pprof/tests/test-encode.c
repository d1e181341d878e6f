/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles: what the encoder was told the decoder reads back, and the bytes keep the rules that the
 * strictest of the receivers has. */
#include "pprof/decode.h"
#include "pprof/encode.h"
#include "protobuf/wire.h"
#include "base/check.h"
#include "testing/test.h"

#include <errno.h>
#include <stdlib.h>

struct demo {
	struct pprof_encoder *e;
	uint32_t mapping, named, bare;
};

static uint32_t string(struct demo *d, const char *s)
{
	return pprof_add_string(d->e, str_of(s));
}

/* Two types; one mapping with a named location (inlined twice) and a bare one. */
static int demo_init(struct demo *d)
{
	struct pprof_function f;
	struct pprof_mapping m = {0};
	struct pprof_line lines[2];
	struct pprof_location l = {.address = 0x1000};

	d->e = pprof_encoder_new();
	if (!d->e)
		return -ENOMEM;
	pprof_add_type(d->e, string(d, "samples"), string(d, "count"));
	pprof_add_type(d->e, string(d, "cpu"), string(d, "nanoseconds"));
	m.file = string(d, "/usr/bin/shop");
	m.build_id = string(d, "abcdef");
	d->mapping = pprof_add_mapping(d->e, &m);
	f = (struct pprof_function){.name = string(d, "inner"), .file = string(d, "shop.c")};
	lines[0] = (struct pprof_line){.function = pprof_add_function(d->e, &f), .line = 7};
	f = (struct pprof_function){.name = string(d, "outer"), .start_line = 3};
	lines[1] = (struct pprof_line){.function = pprof_add_function(d->e, &f), .line = 9};
	if (pprof_failed(d->e))
		return -ENOMEM;
	l.mapping = d->mapping;
	d->bare = pprof_add_location(d->e, &l);
	l.n_lines = 2;
	l.lines = lines;
	d->named = pprof_add_location(d->e, &l);
	return pprof_failed(d->e) ? -ENOMEM : 0;
}

static void add(struct demo *d, uint32_t n, int64_t samples, int64_t ns)
{
	uint32_t locations[2] = {d->bare, d->named};
	int64_t values[2] = {samples, ns};
	struct pprof_label label = {.key = string(d, "process"), .text = string(d, "shop")};
	struct pprof_sample s = {locations, &label, values, n, 1};

	pprof_add_sample(d->e, &s);
}

static int finish(struct demo *d, int level, struct buf *out)
{
	struct pprof_head head = {.time_ns = 5, .duration_ns = 0, .period = 10};
	size_t raw;
	int r = pprof_finish(d->e, &head, level, out, &raw);

	if (r == 0)
		expect(raw <= pprof_size_bound(d->e));
	if (r == 0 && level == 0)
		expect_eq(raw, out->n);
	return r;
}

static int round_trip(void *context)
{
	int level = *(int *)context;
	struct demo d = {0};
	struct buf out = BUF_NULL;
	struct profile *p = NULL;
	int r = demo_init(&d);

	if (r == 0) {
		add(&d, 2, 1, 10);
		add(&d, 1, 2, 20);
		add(&d, 2, 3, 30);
		pprof_add_comment(d.e, string(&d, "andiron: lost 3 samples: ring_full"));
		r = finish(&d, level, &out);
	}
	if (r == 0)
		r = profile_decode(buf_str(&out), &p, NULL);
	if (r == 0) {
		expect_eq(p->n_types, 2);
		expect_str(p->types[1].unit, "nanoseconds");
		expect_eq(p->default_type, 1);
		expect_eq(p->n_samples, 2);
		expect_eq(p->values[0], 4);
		expect_eq(p->values[1], 40);
		expect_eq(p->samples[0].n_frames, 2);
		expect_str(profile_label(p, &p->samples[0], STR("process"))->text, "shop");
		expect(!profile_label(p, &p->samples[0], STR("pid")));
		expect_str(p->period_type.type, "samples");
		expect_eq(p->period, 10);
		expect_eq(p->time_ns, 5);
		expect_eq(p->duration_ns, 1);
		expect_str(p->comments[0], "andiron: lost 3 samples: ring_full");
	}
	profile_free(p);
	buf_free(&out);
	pprof_encoder_free(d.e);
	return r;
}

TEST(what_was_encoded_reads_back_under_failing_allocations)
{
	int level = 0;

	test_each_failing_allocation(round_trip, &level);
	level = 6;
	test_each_failing_allocation(round_trip, &level);
}

/* Pyroscope wipes addresses under has_functions: a mapping is never both. */
TEST(named_and_bare_locations_have_mappings_of_their_own)
{
	struct demo d;
	struct buf out = BUF_NULL;
	struct profile *p;
	const struct profile_location *bare, *named;

	expect_eq(demo_init(&d), 0);
	add(&d, 2, 1, 1);
	expect_eq(finish(&d, 0, &out), 0);
	expect_eq(profile_decode(buf_str(&out), &p, NULL), 0);
	bare = &p->locations[p->frames[0]];
	named = &p->locations[p->frames[1]];
	expect(bare->mapping != named->mapping);
	expect(!p->mappings[bare->mapping].has_functions);
	expect(p->mappings[named->mapping].has_functions);
	expect_str(p->mappings[bare->mapping].file, "/usr/bin/shop");
	expect_str(p->mappings[named->mapping].build_id, "abcdef");
	expect_eq(named->n_lines, 2);
	expect_str(p->functions[p->lines[named->line_start].function].name, "inner");
	profile_free(p);
	buf_free(&out);
	pprof_encoder_free(d.e);
}

/* Servers drop zero samples, one of them after a fault. */
TEST(no_sample_has_only_zeros)
{
	struct demo d;
	struct buf out = BUF_NULL;
	struct profile *p;

	expect_eq(demo_init(&d), 0);
	add(&d, 1, 0, 0);
	expect_eq(pprof_n_samples(d.e), 0);
	add(&d, 1, 5, 5);
	add(&d, 1, -5, -5);
	add(&d, 2, 0, 1);
	expect_eq(finish(&d, 1, &out), 0);
	expect_eq(profile_decode(buf_str(&out), &p, NULL), 0);
	expect_eq(p->n_samples, 1);
	expect_eq(p->values[1], 1);
	profile_free(p);
	buf_free(&out);
	pprof_encoder_free(d.e);
}

TEST(sums_saturate)
{
	struct demo d;
	struct buf out = BUF_NULL;
	struct profile *p;

	expect_eq(demo_init(&d), 0);
	add(&d, 1, INT64_MAX - 1, INT64_MIN + 1);
	add(&d, 1, 2, -2);
	expect_eq(finish(&d, 0, &out), 0);
	expect_eq(profile_decode(buf_str(&out), &p, NULL), 0);
	expect_eq(p->values[0], INT64_MAX);
	expect_eq(p->values[1], INT64_MIN);
	profile_free(p);
	buf_free(&out);
	pprof_encoder_free(d.e);
}

/* Parca: an id is its position; Pyroscope: string 0 is "", all is UTF-8. */
TEST(ids_are_positions_and_strings_are_utf8)
{
	struct demo d;
	struct buf out = BUF_NULL;
	uint64_t next[6] = {0}, strings = 0, id;
	struct wire_field f, g;
	struct str in;

	expect_eq(demo_init(&d), 0);
	string(&d, "bad \xff\xc3(\xed\xa0\x80 end");
	add(&d, 2, 1, 1);
	expect_eq(finish(&d, 0, &out), 0);
	for (in = buf_str(&out); in.n;) {
		expect(wire_next(&in, &f));
		if (f.number == 6) {
			expect(strings++ > 0 || f.bytes.n == 0);
			expect(str_utf8(f.bytes));
		}
		if (f.number < 3 || f.number > 5)
			continue;
		expect(wire_next(&f.bytes, &g) && g.number == 1);
		id = g.value;
		expect_eq(id, ++next[f.number]);
	}
	expect_eq(next[3], 2);
	expect_eq(next[4], 2);
	expect_eq(next[5], 2);
	buf_free(&out);
	pprof_encoder_free(d.e);
}

TEST(an_output_limit_is_kept_and_leaves_the_buffer_as_it_was)
{
	struct demo d;
	struct buf out = {.limit = 64};

	expect_eq(demo_init(&d), 0);
	add(&d, 2, 1, 1);
	expect_eq(buf_str_append(&out, STR("before")), 0);
	expect_eq(finish(&d, 0, &out), -E2BIG);
	expect_str(buf_str(&out), "before");
	expect_eq(finish(&d, 6, &out), -E2BIG);
	expect_str(buf_str(&out), "before");
	out.limit = 0;
	expect_eq(finish(&d, 6, &out), 0);
	buf_free(&out);
	pprof_encoder_free(d.e);
}

/* Whatever was added, the sums that come out are those that went in. */
TEST(values_in_are_values_out)
{
	uint64_t seed = 1;

	for (int run = 0; run < 20; run++) {
		struct demo d;
		struct buf out = BUF_NULL;
		struct profile *p;
		int64_t in = 0, sum = 0;

		expect_eq(demo_init(&d), 0);
		for (int i = 0; i < 500; i++) {
			struct pprof_location l = {.mapping = d.mapping};
			uint32_t stack[8];
			struct pprof_sample s = {.locations = stack};
			int64_t values[2] = {1, 0};

			for (s.n_locations = 0; s.n_locations < 8; s.n_locations++) {
				seed = seed * 6364136223846793005u + 1442695040888963407u;
				l.address = 1 + (seed >> 33) % 3;
				stack[s.n_locations] = pprof_add_location(d.e, &l);
			}
			values[1] = (int64_t)(seed >> 40);
			s.values = values;
			in += values[1];
			pprof_add_sample(d.e, &s);
		}
		expect_eq(finish(&d, run % 2, &out), 0);
		expect_eq(profile_decode(buf_str(&out), &p, NULL), 0);
		for (size_t i = 0; i < p->n_samples; i++)
			sum += p->values[i * p->n_types + 1];
		expect_eq(sum, in);
		profile_free(p);
		buf_free(&out);
		pprof_encoder_free(d.e);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Our encoder's bytes, read by protobuf-c: an independent reader must find the same profile that
 * our own decoder does. */
#include "base/buf.h"
#include "testing/test.h"
#include "pprof/decode.h"
#include "pprof/encode.h"
#include "profile.pb-c.h"

static void encode(struct buf *out)
{
	struct pprof_encoder *e = pprof_encoder_new();
	struct pprof_head head = {.time_ns = 11, .duration_ns = 22, .period = 33};
	struct pprof_mapping m = {.build_id = pprof_add_string(e, STR("cafe"))};
	uint32_t mapping, stack[6];

	pprof_add_type(e, pprof_add_string(e, STR("samples")), pprof_add_string(e, STR("count")));
	pprof_add_type(e, pprof_add_string(e, STR("cpu")), pprof_add_string(e, STR("nanoseconds")));
	head.period_type = pprof_add_string(e, STR("cpu"));
	head.period_unit = pprof_add_string(e, STR("nanoseconds"));
	m.file = pprof_add_string(e, STR("/usr/bin/shop"));
	mapping = pprof_add_mapping(e, &m);
	for (uint32_t i = 0; i < 300; i++) {
		char name[24];
		struct pprof_function f = {.start_line = i};
		struct pprof_line line = {.line = i + 1};
		struct pprof_location l = {.address = i * 0x1000u, .mapping = mapping};
		struct pprof_label label = {.key = pprof_add_string(e, STR("pid")), .number = -1};
		int64_t values[2] = {i, -(int64_t)i};
		struct pprof_sample s = {stack, &label, values, 6, 1};

		snprintf(name, sizeof(name), "function_%u", i);
		f.name = pprof_add_string(e, str_of(name));
		line.function = pprof_add_function(e, &f);
		l.lines = &line;
		l.n_lines = i % 5 ? 1 : 0;
		stack[i % 6] = pprof_add_location(e, &l);
		if (i >= 5)
			pprof_add_sample(e, &s);
	}
	pprof_add_comment(e, pprof_add_string(e, STR("told")));
	expect_eq(pprof_finish(e, &head, 0, out, NULL), 0);
	pprof_encoder_free(e);
}

static void compare_samples(const Andiron__Pprof__Profile *theirs, const struct profile *ours)
{
	expect_eq(theirs->n_sample, ours->n_samples);
	for (size_t i = 0; i < ours->n_samples; i++) {
		const Andiron__Pprof__Sample *a = theirs->sample[i];
		const struct profile_sample *b = &ours->samples[i];

		expect_eq(a->n_location_id, b->n_frames);
		expect_eq(a->n_value, ours->n_types);
		for (size_t k = 0; k < a->n_location_id; k++)
			expect_eq(a->location_id[k], ours->frames[b->frame_start + k]);
		for (size_t k = 0; k < a->n_value; k++)
			expect_eq(a->value[k], ours->values[i * ours->n_types + k]);
		expect_eq(a->label[0]->num, ours->labels[b->label_start].number);
	}
}

static void compare_locations(const Andiron__Pprof__Profile *theirs, const struct profile *ours)
{
	expect_eq(theirs->n_location + 1, ours->n_locations);
	for (size_t i = 0; i < theirs->n_location; i++) {
		const Andiron__Pprof__Location *a = theirs->location[i];
		const struct profile_location *b = &ours->locations[i + 1];

		expect_eq(a->id, i + 1);
		expect_eq(a->address, b->address);
		expect_eq(a->mapping_id, b->mapping);
		expect_eq(a->n_line, b->n_lines);
		if (a->n_line)
			expect_eq(a->line[0]->function_id, ours->lines[b->line_start].function);
	}
}

TEST(an_independent_reader_finds_the_same)
{
	struct buf out = BUF_NULL;
	Andiron__Pprof__Profile *theirs;
	struct profile *ours;

	encode(&out);
	theirs = andiron__pprof__profile__unpack(NULL, out.n, (const uint8_t *)out.p);
	expect(theirs != NULL);
	expect_eq(profile_decode(buf_str(&out), &ours, NULL), 0);
	expect_eq(theirs->time_nanos, 11);
	expect_eq(theirs->duration_nanos, 22);
	expect_eq(theirs->period, 33);
	expect(theirs->period_type != NULL);
	expect_str(str_of(theirs->string_table[theirs->period_type->type]), "cpu");
	expect_str(str_of(theirs->string_table[0]), "");
	expect_str(str_of(theirs->string_table[theirs->comment[0]]), "told");
	expect_eq(theirs->n_mapping, 2);
	expect(theirs->mapping[0]->has_functions != theirs->mapping[1]->has_functions);
	expect_eq(theirs->n_function + 1, ours->n_functions);
	compare_samples(theirs, ours);
	compare_locations(theirs, ours);
	andiron__pprof__profile__free_unpacked(theirs, NULL);
	profile_free(ours);
	buf_free(&out);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of strangers: whatever their bytes say, an export stays within them and gives a profile
 * that reads back with the same sums. */
#include "abi/batch-build.h"
#include "testing/test.h"
#include "export/pprof.h"
#include "pprof/decode.h"

#include <stdlib.h>

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> 33;
}

static uint32_t add_type(struct batch_builder *b, const char *name, const char *type)
{
	struct andiron_profile_type t = {.period = 10};

	t.name = batch_add_string(b, str_of(name));
	t.type = batch_add_string(b, str_of(type));
	t.unit = t.period_unit = batch_add_string(b, STR("nanoseconds"));
	t.period_type = batch_add_string(b, STR("cpu"));
	return batch_add_type(b, &t);
}

static const struct andiron_batch *make_batch(void)
{
	static const struct batch_head head = {.start_ns = 1, .end_ns = 11};
	struct batch_builder *b = batch_builder_new();
	const struct andiron_batch *batch;
	uint32_t frames[8], attribute;

	add_type(b, "process_cpu", "cpu");
	add_type(b, "off_cpu", "off_cpu");
	batch_group_begin(b, NULL, 0);
	attribute = batch_add_str_attribute(b, STR("comm"), STR("worker"));
	for (uint32_t i = 0; i < 8; i++) {
		struct andiron_location l = {.address = i, .kind = (uint16_t)(i % 5)};
		struct andiron_mapping m = {.file = batch_add_string(b, STR("/lib/a.so"))};
		struct andiron_function f = {.name = batch_add_string(b, STR("name"))};
		struct andiron_line line = {.line = i};

		l.runtime = batch_add_string(b, STR("cpython"));
		l.mapping = i % 2 ? batch_add_mapping(b, &m) : 0;
		frames[i] = batch_add_location(b, &l);
		line.function = batch_add_function(b, &f);
		if (i % 3 == 0)
			batch_set_lines(b, frames[i], &line, 1);
	}
	for (uint32_t i = 0; i < 16; i++) {
		struct andiron_row row = {
			.value = i + 1, .samples = 1, .type = i % 2, .n_attrs = 1};

		row.stack = batch_add_stack(b, frames, 1 + i % 8);
		row.attr_start = batch_add_attributes(b, &attribute, 1);
		batch_add_row(b, &row);
	}
	batch_add_loss(b, STR("ring_full"), 3);
	return batch_finish(b, &head, &batch) == 0 ? batch : NULL;
}

/* All rows of the chosen type into `out`; the sum of what was taken. */
static int64_t export_all(const struct andiron_batch *batch, const char *name, uint32_t flags,
			  struct buf *out)
{
	struct pprof_export *x = pprof_export_new(str_of(name), flags);
	struct batch_view view;
	int64_t sum = 0;

	if (batch_view_init(&view, batch) == 0) {
		expect_eq(pprof_export_begin(x, &view), 0);
		for (uint32_t i = 0; i < batch_count(&view, ANDIRON_COL_ROW) && i < 64; i++)
			if (pprof_export_row(x, i) == 0)
				sum += batch_row(&view, i).value;
	}
	expect_eq(pprof_export_finish(x, 77, 0, out, NULL), 0);
	expect(out->n <= pprof_export_size(x));
	pprof_export_free(x);
	return sum;
}

TEST(only_rows_of_the_chosen_name_are_taken)
{
	const struct andiron_batch *batch = make_batch();
	struct buf out = BUF_NULL;
	struct profile *p;
	int64_t sum = 0;

	expect_eq(export_all(batch, "off_cpu", EXPORT_LABELS | EXPORT_LOSSES, &out), 72);
	expect_eq(profile_decode(buf_str(&out), &p, NULL), 0);
	expect_eq(p->n_types, 1);
	expect_str(p->types[0].type, "off_cpu");
	expect_eq(p->time_ns, 77);
	for (size_t i = 0; i < p->n_samples; i++) {
		sum += p->values[i];
		expect_str(profile_label(p, &p->samples[i], STR("comm"))->text, "worker");
		for (uint32_t k = 0; k < p->samples[i].n_frames; k++) {
			const struct profile_location *l =
				&p->locations[p->frames[p->samples[i].frame_start + k]];

			/* Servers drop, or stumble over, what has neither. */
			expect(l->mapping != 0);
			expect(l->n_lines > 0 || l->address > 0);
		}
	}
	expect_eq(sum, 72);
	expect_str(p->comments[0], "andiron: lost 3 samples: ring_full");
	profile_free(p);
	buf_free(&out);
	batch_release(batch);
}

/* One batch has a name and what stands in for one in the same file, with and without a build id. */
static const struct andiron_batch *make_unnamed(void)
{
	static const struct batch_head head = {.start_ns = 1, .end_ns = 11};
	static const char *const names[] = {"named", "[a.so fn 0x20]", "[b.so fn 0x20]"};
	struct batch_builder *b = batch_builder_new();
	const struct andiron_batch *batch;
	uint32_t frames[3];
	struct andiron_row row = {.value = 1, .samples = 1};

	add_type(b, "process_cpu", "cpu");
	batch_group_begin(b, NULL, 0);
	for (uint32_t i = 0; i < 3; i++) {
		struct andiron_mapping m = {
			.file = batch_add_string(b, i < 2 ? STR("/a.so") : STR("/b.so")),
			.gnu_build_id = i < 2 ? batch_add_string(b, STR("abcd")) : 0};
		struct andiron_function f = {.name = batch_add_string(b, str_of(names[i]))};
		struct andiron_location l = {.address = 0x21,
					     .kind = ANDIRON_FRAME_NATIVE,
					     .flags = i ? ANDIRON_LOCATION_UNSYMBOLIZED : 0,
					     .mapping = batch_add_mapping(b, &m)};
		struct andiron_line line = {.function = batch_add_function(b, &f)};

		l.address += i;
		frames[i] = batch_add_location(b, &l);
		batch_set_lines(b, frames[i], &line, 1);
		if (i)
			batch_set_tried(b, frames[i]);
	}
	row.stack = batch_add_stack(b, frames, 3);
	batch_add_row(b, &row);
	return batch_finish(b, &head, &batch) == 0 ? batch : NULL;
}

/* A frame without a name is shown by its function, or left to a server: then as an address, with
 * the build id, in a mapping that holds no names, since a server would wipe it there. */
TEST(frames_without_a_name_are_shown_or_left)
{
	const struct andiron_batch *batch = make_unnamed();

	for (int left = 0; left < 2; left++) {
		struct buf out = BUF_NULL;
		struct profile *p;

		export_all(batch, "", left ? EXPORT_ADDRESSES : 0, &out);
		expect_eq(profile_decode(buf_str(&out), &p, NULL), 0);
		expect_eq(p->samples[0].n_frames, 3);
		for (uint32_t k = 0; k < 3; k++) {
			const struct profile_location *l =
				&p->locations[p->frames[p->samples[0].frame_start + k]];
			const struct profile_mapping *m = &p->mappings[l->mapping];
			bool bare = left && k == 1;

			expect_eq(l->address, 0x21 + k);
			expect_eq(l->n_lines, !bare);
			expect_eq(m->has_functions, !bare);
			expect_str(m->build_id, k < 2 ? "abcd" : "");
		}
		profile_free(p);
		buf_free(&out);
	}
	batch_release(batch);
}

/* Any byte of any segment may be anything. */
TEST(mutated_batches_are_read_within_their_bounds)
{
	const struct andiron_batch *batch = make_batch();
	struct andiron_segment segment = batch->segments[0];
	struct andiron_batch mutant = *batch;
	uint64_t seed = 3, *copy = malloc(segment.size);

	expect_eq(batch->n_segments, 1);
	segment.base = copy;
	mutant.segments = &segment;
	for (int run = 0; run < 5000; run++) {
		struct buf out = BUF_NULL;
		struct profile *p;

		memcpy(copy, batch->segments[0].base, segment.size);
		for (uint64_t k = next_random(&seed) % 6 + 1; k; k--)
			((unsigned char *)copy)[next_random(&seed) % segment.size] =
				(unsigned char)next_random(&seed);
		export_all(&mutant, run % 2 ? "process_cpu" : "", 27 | EXPORT_ADDRESSES, &out);
		expect_eq(profile_decode(buf_str(&out), &p, NULL), 0);
		profile_free(p);
		buf_free(&out);
	}
	free(copy);
	batch_release(batch);
}

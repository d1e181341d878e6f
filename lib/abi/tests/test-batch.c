/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: what the builder was told, the view reads back. */
#include "abi/batch-build.h"
#include "base/index.h"
#include "base/hash.h"
#include "testing/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct batch_head head = {.start_ns = 1, .end_ns = 2, .producer = 3, .sequence = 4};

static struct batch_builder *two_rows(void)
{
	struct batch_builder *b = batch_builder_new();
	struct andiron_profile_type type = {.period = 10};
	struct andiron_location l = {.kind = ANDIRON_FRAME_NATIVE};
	uint32_t frames[2], attrs[2], labels[1];
	struct andiron_row row = {.value = 20, .samples = 2};

	if (!b)
		return NULL;
	type.name = batch_add_string(b, STR("process_cpu"));
	row.type = batch_add_type(b, &type);
	labels[0] = batch_add_str_attribute(b, STR("service_name"), STR("shop"));
	batch_group_begin(b, labels, 1);
	for (uint64_t a = 0; a < 2; a++) {
		l.address = 0x1000 + a;
		frames[a] = batch_add_location(b, &l);
	}
	attrs[0] = batch_add_str_attribute(b, STR("process"), STR("nginx"));
	attrs[1] = batch_add_int_attribute(b, STR("pid"), 42);
	row.attr_start = batch_add_attributes(b, attrs, 2);
	row.n_attrs = 2;
	row.stack = batch_add_stack(b, frames, 2);
	batch_add_row(b, &row);
	row.stack = batch_add_stack(b, frames, 1);
	batch_add_row(b, &row);
	batch_add_loss(b, STR("ring_full"), 7);
	return b;
}

static int build_and_read(void *context)
{
	struct batch_builder *b = two_rows();
	const struct andiron_batch *batch;
	struct batch_view v;
	struct andiron_row row;
	struct str name;
	int64_t pid;
	int r;

	(void)context;
	if (!b)
		return -ENOMEM;
	r = batch_finish(b, &head, &batch);
	if (r < 0)
		return r;
	expect_eq(batch_view_init(&v, batch), 0);
	expect_eq(batch->samples, 4);
	expect_eq(batch_count(&v, ANDIRON_COL_ROW), 2);
	expect_eq(batch_group(&v, 0).n_rows, 2);
	row = batch_row(&v, 0);
	expect(batch_row_str(&v, &row, STR("process"), &name));
	expect_str(name, "nginx");
	expect(batch_row_int(&v, &row, STR("pid"), &pid) && pid == 42);
	expect_eq(batch_stack(&v, row.stack).length, 2);
	expect_eq(batch_location(&v, batch_frame(&v, batch_stack(&v, row.stack).start)).address,
		  0x1000);
	expect_eq(batch_loss(&v, 0).samples, 7);
	batch_release(batch);
	return 0;
}

TEST(what_was_built_reads_back_under_failing_allocations)
{
	test_each_failing_allocation(build_and_read, NULL);
}

/* Equal things are one: writers and queues rely on it for size. */
TEST(adding_again_gives_the_first)
{
	struct batch_builder *b = batch_builder_new();
	uint32_t x[3] = {1, 2, 3};

	expect_eq(batch_add_string(b, STR("a")), batch_add_string(b, STR("a")));
	expect_eq(batch_add_stack(b, x, 3), batch_add_stack(b, x, 3));
	expect(batch_add_stack(b, x, 2) != batch_add_stack(b, x, 3));
	expect_eq(batch_add_attributes(b, x, 2), batch_add_attributes(b, x, 2));
	expect_eq(batch_add_marker(b, STR("[truncated]")), batch_add_marker(b, STR("[truncated]")));
	expect(batch_add_marker(b, STR("[x]")) != batch_add_marker(b, STR("[truncated]")));
	batch_builder_free(b);
}

static int derive(void *context)
{
	const struct andiron_batch *parent = context, *child;
	struct batch_builder *b = batch_derive(parent);
	struct andiron_function f = {0};
	struct andiron_line line = {.line = 12};
	struct batch_view v;
	int r;

	if (!b)
		return -ENOMEM;
	f.name = batch_add_string(b, STR("main"));
	line.function = batch_add_function(b, &f);
	batch_set_lines(b, 1, &line, 1);
	batch_set_tried(b, 2);
	r = batch_finish(b, &head, &child);
	if (r < 0)
		return r;
	expect_eq(batch_view_init(&v, child), 0);
	expect_eq(child->samples, parent->samples);
	expect_eq(batch_location(&v, 1).n_lines, 1);
	expect_str(batch_str(&v, batch_function(&v, batch_line(&v, batch_location(&v, 1).line_start)
							    .function)
					 .name),
		   "main");
	expect_eq(batch_location(&v, 2).flags, ANDIRON_LOCATION_UNSYMBOLIZED);
	expect_str(batch_str(&v, batch_type(&v, 0).name), "process_cpu");
	batch_release(child);
	return 0;
}

/* A derived batch keeps its parent alive and leaves it as it was. */
TEST(derived_batches_borrow)
{
	const struct andiron_batch *parent;
	struct batch_view v;

	expect_eq(batch_finish(two_rows(), &head, &parent), 0);
	test_each_failing_allocation(derive, (void *)(uintptr_t)parent);
	expect_eq(batch_view_init(&v, parent), 0);
	expect_eq(batch_location(&v, 1).n_lines, 0);
	batch_release(parent);
}

/* A stranger's batch may say anything: the view refuses or reads within bounds. */
TEST(broken_batches_stay_within_bounds)
{
	const struct andiron_batch *good;
	uint64_t state = 1;

	expect_eq(batch_finish(two_rows(), &head, &good), 0);
	for (int round = 0; round < 20000; round++) {
		struct andiron_batch bad = *good;
		struct andiron_column columns[ANDIRON_COL_ENCODED];
		struct andiron_segment segment = good->segments[0];
		unsigned char *bytes = malloc(segment.size);
		struct batch_view v;

		memcpy(bytes, segment.base, segment.size);
		memcpy(columns, good->columns, good->n_columns * sizeof(*columns));
		segment.base = bytes;
		bad.columns = columns;
		bad.segments = &segment;
		for (int i = 0; i < 4; i++) {
			state = hash_u64(state);
			((unsigned char *)columns)[state % (good->n_columns * sizeof(*columns))] =
				(unsigned char)(state >> 32);
			bytes[(state >> 8) % segment.size] ^= (unsigned char)(state >> 40);
		}
		if (batch_view_init(&v, &bad) == 0) {
			for (uint32_t i = 0; i < 4; i++) {
				struct andiron_row row = batch_row(&v, i);
				struct str s;

				batch_row_str(&v, &row, STR("process"), &s);
				hash_str(batch_str(&v, i)); /* reads every byte */
				batch_frame(&v, batch_stack(&v, row.stack).start);
			}
		}
		free(bytes);
	}
	batch_release(good);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Encoded profiles in batches: their bytes and labels come out as they went in, through older and
 * newer layouts and through derived batches, and damaged ones are refused. */
#include "abi/batch-build.h"
#include "testing/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct batch_head head = {.start_ns = 1, .end_ns = 2, .producer = 3, .sequence = 4};

static const struct target_label labels[] = {
	{{"service_name", 12}, {"shop", 4}},
	{{"__name__", 8}, {"memory", 6}},
	{{"pod", 3}, {"", 0}},
};

static const struct encoded_profile two[] = {
	{.labels = labels,
	 .n_labels = 3,
	 .format = ANDIRON_ENCODED_PPROF,
	 .bytes = {"\x1f\x8b\0pprof", 8},
	 .raw_bytes = 100,
	 .n_stacks = 5,
	 .start_ns = 10,
	 .end_ns = 20},
	{.labels = labels,
	 .n_labels = 1,
	 .format = ANDIRON_ENCODED_JFR,
	 .bytes = {"FLR", 3},
	 .content_type = {"application/x-jfr", 17},
	 .query = {"format=jfr", 10}},
};

static void expect_two(const struct andiron_batch *batch)
{
	struct batch_view v;
	struct andiron_group group;
	struct andiron_encoded e;
	struct str value;

	expect_eq(batch_view_init(&v, batch), 0);
	expect_eq(batch->samples, 2);
	expect_eq(batch_count(&v, ANDIRON_COL_ENCODED), 2);
	e = batch_encoded(&v, 0);
	group = batch_group(&v, e.group);
	expect(str_eq(batch_encoded_bytes(&v, &e), two[0].bytes));
	expect_eq(group.n_rows, 0);
	expect_eq(group.n_labels, 2);
	expect(batch_group_label(&v, &group, STR("__name__"), &value) && str_is(value, "memory"));
	expect(batch_group_label(&v, &group, STR("service_name"), &value));
	expect_str(value, "shop");
	e = batch_encoded(&v, 1);
	expect_eq(e.format, ANDIRON_ENCODED_JFR);
	expect_eq(e.group, 1);
	expect_str(batch_encoded_bytes(&v, &e), "FLR");
	expect_str(batch_str(&v, e.content_type), "application/x-jfr");
	expect_str(batch_str(&v, e.query), "format=jfr");
}

static int make(void *context)
{
	const struct andiron_batch *batch;
	int r = encoded_batch(two, 2, &head, &batch);

	(void)context;
	if (r < 0)
		return r;
	expect_two(batch);
	batch_release(batch);
	return 0;
}

TEST(bytes_and_labels_come_out_as_they_went_in)
{
	test_each_failing_allocation(make, NULL);
}

/* A component between that knows nothing of the column does not lose it. */
TEST(derived_batches_keep_encoded_profiles)
{
	const struct andiron_batch *parent, *child;
	struct batch_builder *b;

	expect_eq(encoded_batch(two, 2, &head, &parent), 0);
	b = batch_derive(parent);
	expect(batch_add_string(b, STR("a new string")) > 0);
	expect_eq(batch_finish(b, &head, &child), 0);
	batch_release(parent);
	expect_two(child);
	batch_release(child);
}

static int regroup(void *context)
{
	const struct andiron_batch *parent = context, *child;
	struct batch_builder *b = batch_regroup(parent);
	struct batch_view v, w;
	struct andiron_encoded e;
	uint32_t label;
	int r;

	if (!b)
		return -ENOMEM;
	expect_eq(batch_view_init(&v, parent), 0);
	label = batch_add_str_attribute(b, STR("__name__"), STR("heap"));
	batch_group_begin(b, &label, 1);
	e = batch_encoded(&v, 1);
	batch_keep_encoded(b, &e);
	r = batch_finish(b, &head, &child);
	if (r < 0)
		return r;
	expect_eq(batch_view_init(&w, child), 0);
	expect_eq(child->samples, 1);
	expect_eq(batch_count(&w, ANDIRON_COL_GROUP), 1);
	expect_eq(batch_count(&w, ANDIRON_COL_ENCODED), 1);
	e = batch_encoded(&w, 0);
	expect_eq(e.group, 0);
	expect_str(batch_encoded_bytes(&w, &e), "FLR");
	expect_str(batch_str(&w, e.query), "format=jfr");
	batch_release(child);
	return 0;
}

/* Of other groups the parent's bytes are read where they are. */
TEST(regrouped_batches_borrow_bytes)
{
	const struct andiron_batch *parent;

	expect_eq(encoded_batch(two, 2, &head, &parent), 0);
	test_each_failing_allocation(regroup, (void *)(uintptr_t)parent);
	expect_two(parent);
	batch_release(parent);
}

/* What all is dropped of is not borrowed. */
TEST(regrouped_batches_may_be_empty)
{
	const struct andiron_batch *parent, *child;
	struct batch_view v;

	expect_eq(encoded_batch(two, 2, &head, &parent), 0);
	expect_eq(batch_finish(batch_regroup(parent), &head, &child), 0);
	expect_eq(batch_view_init(&v, child), 0);
	expect_eq(child->samples, 0);
	expect_eq(batch_count(&v, ANDIRON_COL_GROUP), 0);
	expect_eq(batch_count(&v, ANDIRON_COL_ENCODED), 0);
	batch_release(child);
	batch_release(parent);
}

TEST(more_than_a_batch_may_be_is_refused)
{
	size_t n = ANDIRON_BATCH_MAX_BYTES;
	struct encoded_profile p = {.bytes = {calloc(1, n), n}};
	const struct andiron_batch *batch;

	expect_eq(encoded_batch(&p, 1, &head, &batch), -E2BIG);
	free((char *)(uintptr_t)p.bytes.p);
}

/* A batch of two profiles whose records are `size` bytes long, as far as they go. */
struct resized {
	struct andiron_batch batch;
	struct andiron_column columns[ANDIRON_COL_ENCODED];
	struct andiron_segment segments[2];
	unsigned char records[2 * 128];
};

static void resize(const struct andiron_batch *from, uint32_t size, struct resized *to)
{
	struct batch_view v;

	expect_eq(batch_view_init(&v, from), 0);
	memset(to->records, 0xa5, sizeof(to->records));
	for (uint32_t i = 0; i < 2; i++) {
		struct andiron_encoded e = batch_encoded(&v, i);

		memcpy(to->records + i * size, &e, size < sizeof(e) ? size : sizeof(e));
	}
	to->batch = *from;
	memcpy(to->columns, from->columns, from->n_columns * sizeof(*from->columns));
	to->segments[0] = from->segments[0];
	to->segments[1] = (struct andiron_segment){to->records, sizeof(to->records), -1, 0};
	to->batch.columns = to->columns;
	to->batch.segments = to->segments;
	to->batch.n_segments = 2;
	for (uint32_t i = 0; i < from->n_columns; i++)
		if (to->columns[i].id == ANDIRON_COL_ENCODED) {
			to->columns[i].segment = 1;
			to->columns[i].offset = 0;
			to->columns[i].elem_size = size;
		}
}

/* Records shorter or longer than ours: what they lack is 0, what they have more is not read. */
TEST(older_and_newer_records_are_read)
{
	const struct andiron_batch *batch;
	struct resized r;
	struct batch_view v;

	expect_eq(encoded_batch(two, 2, &head, &batch), 0);
	resize(batch, 32, &r);
	expect_two(&r.batch);
	expect_eq(batch_view_init(&v, &r.batch), 0);
	expect_eq(batch_encoded(&v, 0).raw_bytes, 0);
	resize(batch, 128, &r);
	expect_two(&r.batch);
	expect_eq(batch_view_init(&v, &r.batch), 0);
	expect_eq(batch_encoded(&v, 0).raw_bytes, 100);
	expect_eq(batch_encoded(&v, 0).end_ns, 20);
	batch_release(batch);
}

static int init_changed(const struct resized *from, struct andiron_encoded change)
{
	struct resized r = *from;
	struct batch_view v;

	r.batch.columns = r.columns;
	r.batch.segments = r.segments;
	memcpy(r.records + sizeof(change), &change, sizeof(change));
	r.segments[1].base = r.records;
	return batch_view_init(&v, &r.batch);
}

/* One place decides whether a batch is whole, for all who read it. */
TEST(profiles_out_of_bounds_are_refused)
{
	const struct andiron_batch *batch;
	struct andiron_encoded e, bad;
	struct resized r;
	struct batch_view v;
	uint64_t size;

	expect_eq(encoded_batch(two, 2, &head, &batch), 0);
	resize(batch, sizeof(e), &r);
	expect_eq(batch_view_init(&v, &r.batch), 0);
	e = batch_encoded(&v, 1);
	size = r.segments[0].size;
	expect_eq(init_changed(&r, e), 0);
	bad = e;
	bad.offset = size - e.length + 1;
	expect_eq(init_changed(&r, bad), -EINVAL);
	bad.offset = UINT64_MAX;
	expect_eq(init_changed(&r, bad), -EINVAL);
	bad = e;
	bad.length = UINT32_MAX;
	expect_eq(init_changed(&r, bad), -EINVAL);
	bad.length = 0;
	expect_eq(init_changed(&r, bad), -EINVAL);
	bad = e;
	bad.segment = 2;
	expect_eq(init_changed(&r, bad), -EINVAL);
	bad = e;
	bad.group = 2;
	expect_eq(init_changed(&r, bad), -EINVAL);
	batch_release(batch);
}

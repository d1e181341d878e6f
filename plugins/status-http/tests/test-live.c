/* SPDX-License-Identifier: Apache-2.0 */
/* The last minutes: what is kept, for how long and how much of it, and what a look gives. */
#include "status-http/live.h"

#include "abi/batch-build.h"
#include "base/clock.h"
#include "testing/test.h"

#include <errno.h>
#include <stdlib.h>

#define MIB ((size_t)1 << 20)

/* One stack of `samples`, with a text of so many bytes beside it. NULL when memory is short. */
static const struct andiron_batch *batch_of(int64_t end_ns, uint64_t samples, size_t bytes)
{
	const struct batch_head head = {.start_ns = end_ns - NS_PER_SEC, .end_ns = end_ns};
	struct batch_builder *b = batch_builder_new();
	struct andiron_profile_type type = {.period = 1000};
	struct andiron_row row = {.samples = samples, .value = (int64_t)samples * 1000};
	struct andiron_location location = {.address = 0x1000};
	const struct andiron_batch *batch;
	char *text = calloc(1, bytes + 1);
	uint32_t stack;

	if (!b || !text) {
		if (b)
			batch_builder_free(b);
		free(text);
		return NULL;
	}
	for (size_t i = 0; i < bytes; i++)
		text[i] = 'x';
	type.name = batch_add_string(b, STR("process_cpu"));
	type.type = type.period_type = batch_add_string(b, STR("cpu"));
	type.unit = type.period_unit = batch_add_string(b, STR("nanoseconds"));
	batch_add_type(b, &type);
	batch_add_string(b, (struct str){text, bytes});
	free(text);
	batch_group_begin(b, NULL, 0);
	stack = batch_add_location(b, &location);
	row.stack = batch_add_stack(b, &stack, 1);
	batch_add_row(b, &row);
	return batch_finish(b, &head, &batch) == 0 ? batch : NULL;
}

/* Takes one and gives up the own reference. */
static int take(struct recent *l, int64_t end_ns, uint64_t samples, size_t bytes)
{
	const struct andiron_batch *batch = batch_of(end_ns, samples, bytes);

	if (!batch)
		return -ENOMEM;
	recent_take(l, batch);
	batch->release(batch->owner);
	return 0;
}

/* What a batch that is too old leaves, and the order. */
TEST(what_is_too_old_goes)
{
	struct recent l = {.max_bytes = LIVE_BYTES, .keep_ns = 10 * NS_PER_SEC};

	for (int64_t s = 1; s <= 20; s++)
		expect_eq(take(&l, s * NS_PER_SEC, 1, 0), 0);
	expect_eq(l.batches.n, 11);
	expect_eq(l.batches.p[0]->end_ns, 10 * NS_PER_SEC);
	recent_fini(&l);
}

/* Bytes are bounded whatever comes: the oldest go, and what is larger than all is not taken. */
TEST(what_is_too_much_goes)
{
	struct recent l = {.max_bytes = LIVE_BYTES, .keep_ns = 1000 * NS_PER_SEC};

	for (int64_t s = 1; s <= 5; s++) {
		expect_eq(take(&l, s * NS_PER_SEC, 1, 6 * MIB), 0);
		expect(l.bytes <= LIVE_BYTES);
	}
	expect_eq(l.batches.n, 2);
	expect_eq(l.batches.p[1]->end_ns, 5 * NS_PER_SEC);
	expect_eq(take(&l, 6 * NS_PER_SEC, 1, 17 * MIB), 0);
	expect_eq(l.batches.p[l.batches.n - 1]->end_ns, 5 * NS_PER_SEC);
	recent_fini(&l);
}

static size_t looked_at(const struct recent *l, enum live_form form, int64_t last, int64_t against,
			int result)
{
	struct live_look k = {
		.form = form, .last_ns = last * NS_PER_SEC, .against_ns = against * NS_PER_SEC};
	size_t n;

	expect_eq(live_look_init(&k, l, 100 * NS_PER_SEC), 0);
	live_look_draw(&k);
	expect_eq(k.result, result);
	expect_eq(k.out.n > 0, result == 0);
	n = k.after.n + 100 * k.before.n;
	live_look_fini(&k);
	return n;
}

/* A look has the batches of its time, those of the time before, and says if there are none. */
TEST(a_look_is_of_its_time)
{
	struct recent l = {.max_bytes = LIVE_BYTES, .keep_ns = 1000 * NS_PER_SEC};

	expect_eq(looked_at(&l, LIVE_FLAME, 60, 0, -ENODATA), 0);
	for (int64_t s = 81; s <= 100; s++)
		expect_eq(take(&l, s * NS_PER_SEC, 1, 0), 0);
	expect_eq(looked_at(&l, LIVE_FLAME, 10, 0, 0), 10);
	expect_eq(looked_at(&l, LIVE_PPROF, 60, 0, 0), 20);
	expect_eq(looked_at(&l, LIVE_COMPARED, 3, 10, 0), 303);
	expect_eq(looked_at(&l, LIVE_COMPARED, 3, 60, -ENODATA), 3);
	recent_fini(&l);
}

/* A look outlives what it was made from. */
TEST(what_is_looked_at_stays)
{
	struct recent l = {.max_bytes = LIVE_BYTES, .keep_ns = NS_PER_SEC};
	struct live_look k = {.form = LIVE_FLAME, .last_ns = 60 * NS_PER_SEC};

	expect_eq(take(&l, NS_PER_SEC, 7, 0), 0);
	expect_eq(live_look_init(&k, &l, NS_PER_SEC), 0);
	recent_fini(&l);
	live_look_draw(&k);
	expect_eq(k.result, 0);
	live_look_fini(&k);
}

static int take_and_look(void *context)
{
	struct recent l = {.max_bytes = LIVE_BYTES, .keep_ns = NS_PER_SEC};
	struct live_look k = {
		.form = LIVE_COMPARED, .last_ns = NS_PER_SEC, .against_ns = NS_PER_SEC};
	int r = take(&l, 2 * NS_PER_SEC, 7, 0);

	r = r ?: take(&l, 3 * NS_PER_SEC, 7, 0);
	r = r ?: l.batches.n == 2 ? live_look_init(&k, &l, 3 * NS_PER_SEC) : -ENOMEM;
	if (r == 0) {
		live_look_draw(&k);
		r = k.result;
	}
	live_look_fini(&k);
	recent_fini(&l);
	return r;
}

TEST(looks_survive_failing_allocations)
{
	test_each_failing_allocation(take_and_look, NULL);
}

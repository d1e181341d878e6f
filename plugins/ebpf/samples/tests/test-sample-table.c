/* SPDX-License-Identifier: Apache-2.0 */
/* The table of one buffer's samples: what is equal, what is found, what does not fit. */
#include "ebpf/samples/sample-table.h"

#include "testing/test.h"

#include <errno.h>

/* Samples with an id are found by it, and a record that is not whole is refused. */
TEST(stacks_are_kept_by_id)
{
	struct {
		struct sampler_stack head;
		uint64_t pcs[4];
	} record = {{.type = SAMPLER_RECORD_STACK, .n_kernel = 1, .n_user = 3}, {1, 2, 3, 4}};
	struct sample_table s = {0};
	const uint64_t *found;

	for (uint64_t id = 1; id <= 1000; id++) {
		record.head.id = id << 16;
		record.pcs[0] = id;
		expect_eq(sample_table_add(&s, &record, sizeof(record)), 0);
	}
	for (uint64_t id = 1; id <= 1000; id++) {
		expect(sample_table_find(&s, id << 16, &found));
		expect_eq(found[0], id);
	}
	expect(!sample_table_find(&s, 77, &found));
	for (size_t size = 0; size < sizeof(record); size++)
		expect_eq(sample_table_add(&s, &record, size), -EINVAL);
	record.head.n_user = 9999;
	expect_eq(sample_table_add(&s, &record, sizeof(record)), -EINVAL);
	expect_eq(s.lost, 0);
	sample_table_clear(&s);
	expect(!sample_table_find(&s, 1 << 16, &found));
	sample_table_free(&s);
}

struct sum {
	uint64_t samples, records, waited_ns;
};

static void add_up(void *context, const struct sampler_stack *record, const uint64_t *frames,
		   uint64_t samples)
{
	struct sum *sum = context;

	sum->records++;
	sum->samples += samples;
	sum->waited_ns += record->flags & SAMPLER_STACK_OFF_CPU ? record->id : 0;
}

/* Equal samples are one, unless they have ids; whose, of what image and how it ended makes others
 * of them, as frames do. */
TEST(equal_samples_are_kept_once)
{
	struct {
		struct sampler_stack head;
		uint64_t pcs[4];
	} record,
		first = {{.type = SAMPLER_RECORD_STACK, .n_kernel = 1, .n_user = 3}, {1, 2, 3, 4}};
	struct sample_table s = {0};
	struct sum sum = {0};

	for (int i = 0; i < 1000; i++) {
		record = first;
		record.pcs[3] += i % 10 == 0;
		record.head.key.process.tgid = i % 10 == 1;
		record.head.key.cgroup = i % 10 == 2;
		record.head.key.comm[15] = i % 10 == 3;
		record.head.end = i % 10 == 4;
		record.head.flags = i % 10 == 5 ? 4 : 0;
		if (i % 10 == 6)
			record.head.n_user--;
		expect_eq(sample_table_add(&s, &record, sizeof(record)), 0);
	}
	sample_table_each(&s, add_up, &sum);
	expect_eq(sum.records, 8);
	expect_eq(sum.samples, 1000);
	record.head.id = 1;
	for (int i = 0; i < 2; i++)
		expect_eq(sample_table_add(&s, &record, sizeof(record)), 0);
	sum = (struct sum){0};
	sample_table_each(&s, add_up, &sum);
	expect_eq(sum.records, 10);
	expect_eq(sum.samples, 1002);
	sample_table_free(&s);
}

/* What does not fit is counted; what completes another one is no sample. */
TEST(samples_that_do_not_fit_are_counted)
{
	static struct {
		struct sampler_stack head;
		uint64_t pcs[ANDIRON_WALK_USER];
	} record = {.head = {.type = SAMPLER_RECORD_STACK, .n_user = ANDIRON_WALK_USER}};
	const uint64_t n = SAMPLE_TABLE_MAX_WORDS / (1 + sizeof(record) / sizeof(uint64_t));
	struct sample_table s = {0};
	struct sum sum = {0};

	for (uint64_t i = 0; i < n + 5; i++) {
		record.pcs[7] = i;
		expect_eq(sample_table_add(&s, &record, sizeof(record)), i < n ? 0 : -E2BIG);
	}
	expect_eq(s.lost, 5);
	record.pcs[7] = 3;
	expect_eq(sample_table_add(&s, &record, sizeof(record)), 0);
	record.head.id = SAMPLER_STACK_COMPLETED | 1;
	expect_eq(sample_table_add(&s, &record, sizeof(record)), -E2BIG);
	expect_eq(s.lost, 5);
	sample_table_each(&s, add_up, &sum);
	expect_eq(sum.samples, n + 1);
	sample_table_clear(&s);
	expect_eq(s.lost, 0);
	sample_table_free(&s);
}

/* Of equal waits there is one, of all their time; its time is no id. */
TEST(equal_waits_are_added_up)
{
	struct {
		struct sampler_stack head;
		uint64_t pcs[4];
	} record = {{.type = SAMPLER_RECORD_STACK,
		     .n_kernel = 1,
		     .n_user = 3,
		     .flags = SAMPLER_STACK_OFF_CPU},
		    {1, 2, 3, 4}};
	struct sample_table s = {0};
	struct sum sum = {0};
	const uint64_t *found;

	for (uint64_t ns = 1; ns <= 100; ns++) {
		record.head.id = ns;
		expect_eq(sample_table_add(&s, &record, sizeof(record)), 0);
	}
	sample_table_each(&s, add_up, &sum);
	expect_eq(sum.records, 1);
	expect_eq(sum.samples, 100);
	expect_eq(sum.waited_ns, 5050);
	expect(!sample_table_find(&s, 5050, &found));
	record.head.flags = 0;
	record.head.id = 5050;
	expect_eq(sample_table_add(&s, &record, sizeof(record)), 0);
	expect(sample_table_find(&s, 5050, &found));
	sum = (struct sum){0};
	sample_table_each(&s, add_up, &sum);
	expect_eq(sum.records, 2);
	expect_eq(sum.waited_ns, 5050);
	sample_table_free(&s);
}

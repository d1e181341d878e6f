/* SPDX-License-Identifier: Apache-2.0 */
/* The table of requests. */
#include "http/sender/numbered.h"

#include "testing/test.h"

#include <errno.h>

#define N 1000

static struct numbered items[N + 1];

/* Each is found by its number as long as it is there, wherever others have been taken out; and all
 * that are there are gone through. */
TEST(each_is_found_until_it_is_taken_out)
{
	struct numbered_table table = {0};
	size_t left = 0;

	for (uint64_t id = 1; id <= N; id++) {
		items[id].id = id;
		expect_eq(numbered_add(&table, &items[id]), 0);
	}
	for (uint64_t id = 1; id <= N; id++)
		if (id % 3)
			numbered_remove(&table, &items[id]);
	for (uint64_t id = 1; id <= N + 1; id++)
		expect(numbered_find(&table, id) == (id % 3 || id > N ? NULL : &items[id]));
	for (struct numbered *last; (last = numbered_last(&table)); left++) {
		expect(numbered_find(&table, last->id) == last);
		numbered_remove(&table, last);
	}
	expect_eq(left, N / 3);
	numbered_free(&table);
}

static int add_all(void *context)
{
	struct numbered_table table = {0};
	int r = 0;

	for (uint64_t id = 1; id <= N && r == 0; id++) {
		items[id].id = id;
		r = numbered_add(&table, &items[id]);
		if (r < 0)
			expect(!numbered_find(&table, id) && table.items.n == id - 1);
	}
	numbered_free(&table);
	return r;
}

/* What could not be added is not there, and those before it are. */
TEST(adding_survives_out_of_memory)
{
	test_each_failing_allocation(add_all, NULL);
}

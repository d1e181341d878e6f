/* SPDX-License-Identifier: Apache-2.0 */
/* Claims and ends of processes, in the orders in which they may come. */
#include "runtime-kit/process-table.h"

#include "testing/test.h"

#include <errno.h>
#include <stdlib.h>

static struct andiron_runtime_process key(uint32_t pid, uint64_t start, uint64_t exec)
{
	return (struct andiron_runtime_process){pid, 0, start, exec};
}

static struct process_entry *add(struct process_table *t, struct andiron_runtime_process k)
{
	struct process_entry *e = malloc(sizeof(*e));

	expect(e != NULL);
	expect_eq(process_table_add(t, e, &k), 0);
	return e;
}

static void fini(struct process_table *t)
{
	struct process_entry *e;

	while ((e = process_table_take(t)) != NULL)
		free(e);
	expect_eq(t->n_living + t->n_gone, 0);
	process_table_fini(t);
}

/* A process that was only idle is claimed again as the one that it is. */
TEST(claim_revives_what_was_gone)
{
	struct andiron_runtime_process k = key(7, 100, 1);
	struct process_table t;
	struct process_claim c;
	struct process_entry *e;

	expect_eq(process_table_init(&t, 4, 4), 0);
	expect(process_table_claim(&t, &k).entry == NULL);
	e = add(&t, k);
	c = process_table_claim(&t, &k);
	expect(c.entry == e && !c.revived && !c.replaced);
	expect(process_table_gone(&t, &k) == e);
	expect(process_table_gone(&t, &k) == NULL);
	expect(process_table_find(&t, &k) == e && e->gone);
	c = process_table_claim(&t, &k);
	expect(c.entry == e && c.revived && !c.replaced && !e->gone);
	expect_eq(t.n_living, 1);
	expect_eq(t.n_gone, 0);
	fini(&t);
}

/* Another program in the same process takes its place; its names are kept. */
TEST(exec_replaces)
{
	struct andiron_runtime_process before = key(7, 100, 1), after = key(7, 100, 2);
	struct process_entry *e, *f;
	struct process_table t;
	struct process_claim c;

	expect_eq(process_table_init(&t, 4, 4), 0);
	e = add(&t, before);
	expect(process_table_find(&t, &after) == e);
	c = process_table_claim(&t, &after);
	expect(c.entry == NULL && c.replaced && e->gone);
	f = add(&t, after);
	expect(f->id != e->id);
	expect(process_table_find(&t, &before) == e);
	expect(process_table_find(&t, &after) == f);
	/* The end comes with the generation that the process had last, or first. */
	expect(process_table_gone(&t, &before) == f);
	fini(&t);
}

/* A late end of the pid's former process leaves the present one alone. */
TEST(late_end_spares_a_successor)
{
	struct andiron_runtime_process old = key(7, 100, 1), new = key(7, 900, 1);
	struct process_table t;
	struct process_entry *e;

	expect_eq(process_table_init(&t, 4, 4), 0);
	add(&t, old);
	expect(process_table_claim(&t, &new).replaced);
	e = add(&t, new);
	expect(process_table_gone(&t, &old) == NULL);
	expect(process_table_claim(&t, &new).entry == e);
	fini(&t);
}

/* Neither those that live nor those that have gone grow without bound. */
TEST(entries_are_bounded)
{
	struct process_table t;
	struct process_entry one, *e;
	uint32_t freed = 0;

	expect_eq(process_table_init(&t, 3, 5), 0);
	for (uint32_t pid = 1; pid <= 1000; pid++) {
		struct andiron_runtime_process k = key(pid, pid, 1);

		expect(process_table_claim(&t, &k).entry == NULL);
		add(&t, k);
		if (pid > 2)
			expect(process_table_gone(&t, &(struct andiron_runtime_process){
							      pid - 2, 0, pid - 2, 1}) != NULL);
		while ((e = process_table_excess(&t)) != NULL) {
			expect_eq(e->key.pid, ++freed);
			free(e);
		}
		expect(t.n_gone <= 5);
	}
	add(&t, key(2000, 1, 1));
	expect_eq(process_table_add(&t, &one, &(struct andiron_runtime_process){2001, 0, 1, 1}),
		  -ENOSPC);
	fini(&t);
}

static int make(void *context)
{
	struct process_table t;
	int r = process_table_init(&t, 8, 8);

	if (r == 0)
		process_table_fini(&t);
	return r;
}

TEST(survives_out_of_memory)
{
	test_each_failing_allocation(make, NULL);
}

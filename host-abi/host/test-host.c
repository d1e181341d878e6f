/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime as a whole: life cycle, flow, order, ledger. */
#include "test-support.h"

#include <errno.h>

static void take_three(struct probe *p)
{
	for (int i = 0; i < 3; i++)
		test_take(p, 100, 0);
}

/* Everything that is taken arrives, also what is sent while draining; the
 * life cycle is whole and in order: consumers start first, producers drain
 * first. */
TEST(a_pipeline_runs_and_drains)
{
	struct probe a = {.on_start = take_three, .send_at_drain = 2}, b = {0}, c = {0};
	struct host *host;
	struct plan *plan = test_plan();
	uint32_t na = test_node(plan, "a", &test_producer, &a);
	uint32_t nb = test_node(plan, "b", &test_forward, &b);
	uint32_t nc = test_node(plan, "c", &test_writer, &c);

	test_batches(plan, na, nb);
	test_batches(plan, nb, nc);
	host = test_host((struct host_options){.live = test_stop_live, .context = &host});
	expect_eq(host_load(host, plan, NULL), 0);
	test_run(host, 0);
	test_before("+c", "+b");
	test_before("+b", "+a");
	test_before("da", "db");
	test_before("db", "dc");
	test_before("dc", "-c");
	test_before("-a", "-b");
	test_before("-b", "-c");
	expect_eq(c.samples, 320);
	expect_eq(test_writer_row(host, "c")->delivered, 320);
	expect_eq(host_ledger(host)->taken, 320);
	host_free(host);
	expect_eq(a.n_destroy + b.n_destroy + c.n_destroy, 3);
}

/* A component that fails to start says why, and the others run. */
TEST(a_failed_start_stops_nothing_else)
{
	struct probe a = {.on_start = take_three}, b = {.fail_start = -EACCES}, c = {0};
	struct host *host;
	struct plan *plan = test_plan();
	uint32_t na = test_node(plan, "a", &test_producer, &a);
	uint32_t nb = test_node(plan, "b", &test_writer, &b);
	uint32_t nc = test_node(plan, "c", &test_writer, &c);

	test_batches(plan, na, nb);
	test_batches(plan, na, nc);
	host = test_host((struct host_options){.live = test_stop_live, .context = &host});
	expect_eq(host_load(host, plan, NULL), 0);
	test_run(host, -EIO);
	expect_eq(c.samples, 300);
	expect_eq(test_dropped(host, "b", "b:not_started"), 300);
	expect_eq(b.n_stop, 1);
	expect_eq(b.n_destroy, 1);
	host_free(host);
}

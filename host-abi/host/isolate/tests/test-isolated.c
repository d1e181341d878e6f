/* SPDX-License-Identifier: Apache-2.0 */
/* The books of an isolated component, whatever its process says; scripted-process.c is that. */
#include "host/tests/test-support.h"

#include <andiron/component.h>

struct scene {
	struct host *host;
	struct probe producer, writer;
	const char *row;
	uint64_t n_ticks;
};

static void on_live(void *context, const char *failed)
{
	struct scene *s = context;

	expect(!failed);
	test_take(&s->producer, 10, 0);
}

/* Stops the host when the samples are somewhere, and then at once. */
static void on_tick(void *context)
{
	struct scene *s = context;
	const struct ledger_writer *w = test_writer_row(s->host, s->row);

	if (w->delivered + w->spooled + w->uncertain == 0)
		return;
	host_stop(s->host);
	if (!s->writer.name) /* it is never drained */
		host_stop(s->host);
}

/* What becomes of 10 samples under this script. */
static struct ledger_writer run(const char *script, bool forwards)
{
	static const struct andiron_option option = {.name = "forward_to",
						     .type = ANDIRON_TYPE_RECEIVERS};
	static const struct andiron_options options = {
		.items = &option, .count = 1, .stride = sizeof(option)};
	static struct andiron_component component;
	struct scene s = {.row = forwards ? "w" : "i"};
	struct plan *plan = test_plan();
	struct probe isolated = {0};
	struct ledger_writer row;
	uint32_t p, i;

	component = (struct andiron_component){
		.size = sizeof(component),
		.name = script,
		.flags = forwards ? 0 : ANDIRON_COMPONENT_WRITER,
		.options = forwards ? &options : NULL,
	};
	p = test_node(plan, "p", &test_producer, &s.producer);
	i = test_node(plan, "i", &component, &isolated);
	plan->nodes.p[i].isolate = true;
	test_batches(plan, p, i);
	if (forwards)
		test_batches(plan, i, test_node(plan, "w", &test_writer, &s.writer));
	s.host = test_host((struct host_options){.worker = WORKER, .live = on_live, .context = &s});
	expect_eq(host_load(s.host, plan, NULL), 0);
	expect_eq(host_timer(s.host, NS_PER_MSEC, NS_PER_MSEC, on_tick, &s), 0);
	test_run(s.host, 0);
	row = *test_writer_row(s.host, s.row);
	host_free(s.host);
	return row;
}

/* What was given up without an answer is uncertain still when its process is stopped, and is in no
 * store; what is in one is. */
TEST(what_a_process_leaves_stays_what_it_is)
{
	struct ledger_writer row = run("says.uncertain", false);

	expect_eq(row.uncertain, 10);
	expect_eq(row.spooled, 0);
	row = run("says.spooled", false);
	expect_eq(row.spooled, 10);
	expect_eq(row.uncertain, 0);
}

/* A process that says that it keeps what it then passes on. */
TEST(what_is_passed_on_is_kept_by_nobody)
{
	struct ledger_writer row = run("sends.spooled", true);

	expect_eq(row.delivered, 10);
	expect_eq(row.spooled, 0);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The books of an isolated component, whatever its process says; scripted-process.c is that. */
#include "host/tests/test-support.h"

#include <andiron/component.h>

struct scene {
	struct host *host;
	struct probe producer, writer;
	const char *row;
	bool ends;                         /* it says so when it is drained */
	const struct andiron_batch *batch; /* to offer while memory is short; NULL: one is sent */
	atomic_int n_answers;
	int answer;
	uint64_t n_lost; /* as the answers say */
};

static void on_answer(void *arg, int32_t result)
{
	struct scene *s = arg;

	s->answer = result;
	s->n_answers++;
}

/* What becomes of an offer. */
static int offer(void *context)
{
	struct scene *s = context;
	int before = s->n_answers;
	int r = s->producer.host->offer_batch(s->producer.instance, s->batch, on_answer, s);

	if (r < 0)
		return r;
	test_until(s->host, &s->n_answers, before + 1);
	s->n_lost += s->answer < 0 ? 10 : 0;
	return s->answer;
}

static void on_live(void *context, const char *failed)
{
	struct scene *s = context;

	expect(!failed);
	if (s->batch)
		test_each_failing_allocation(offer, s);
	else
		test_take(&s->producer, 10, 0);
	if (s->ends)
		host_stop(s->host);
}

/* Stops the host when the samples are somewhere, and then at once. While memory is short the books
 * are not asked for. */
static void on_tick(void *context)
{
	struct scene *s = context;
	const struct ledger_writer *w = s->ends ? NULL : test_writer_row(s->host, s->row);

	if (!w || w->delivered + w->spooled + w->uncertain == 0)
		return;
	host_stop(s->host);
	if (!s->writer.name) /* it is never drained */
		host_stop(s->host);
}

/* What becomes of 10 samples under this script. */
static struct ledger_writer run_scene(struct scene *s, const char *script, bool forwards)
{
	static const struct andiron_option option = {.name = "forward_to",
						     .type = ANDIRON_TYPE_RECEIVERS};
	static const struct andiron_options options = {
		.items = &option, .count = 1, .stride = sizeof(option)};
	static struct andiron_component component;
	struct plan *plan = test_plan();
	struct probe isolated = {0};
	struct ledger_writer row;
	uint32_t p, i;

	s->row = forwards ? "w" : "i";
	component = (struct andiron_component){
		.size = sizeof(component),
		.name = script,
		.flags = forwards ? 0 : ANDIRON_COMPONENT_WRITER,
		.options = forwards ? &options : NULL,
		.batch = test_writer.batch,
	};
	p = test_node(plan, "p", &test_producer, &s->producer);
	i = test_node(plan, "i", &component, &isolated);
	plan->nodes.p[i].isolate = true;
	test_batches(plan, p, i);
	if (forwards)
		test_batches(plan, i, test_node(plan, "w", &test_writer, &s->writer));
	s->host = test_host((struct host_options){.worker = WORKER, .live = on_live, .context = s});
	expect_eq(host_load(s->host, plan, NULL), 0);
	expect_eq(host_timer(s->host, NS_PER_MSEC, NS_PER_MSEC, on_tick, s), 0);
	test_run(s->host, 0);
	row = *test_writer_row(s->host, s->row);
	host_free(s->host);
	return row;
}

static struct ledger_writer run(const char *script, bool forwards)
{
	struct scene s = {0};

	return run_scene(&s, script, forwards);
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

/* A process that ends by itself has said what it keeps: the rest is lost, and not in flight. */
TEST(what_is_not_accounted_for_at_the_end_is_lost)
{
	static const char *const scripts[] = {"says.nothing", "forgets.spooled"};

	for (size_t i = 0; i < 2; i++) {
		struct scene s = {.ends = true};
		struct ledger_writer row = run_scene(&s, scripts[i], false);

		expect_eq(row.dropped, 10);
		expect_eq(row.spooled + row.in_flight, 0);
	}
}

/* --- Targets --- */

struct lists {
	struct host *host;
	struct probe producer;
	size_t n[3], most;
	bool refused;
};

/* Stops once another process had to be started, or the agent has so many rows. */
static void on_list_tick(void *context)
{
	struct lists *t = context;
	struct instance *i = t->host->instances.n > 1 ? t->host->instances.p[1] : NULL;
	size_t sum = 0;

	if (!i) /* it has stopped */
		return;
	for (size_t n = 0; n < 3; n++) {
		pthread_mutex_lock(&i->exports[n].lock);
		t->n[n] = target_table_count(i->exports[n].table);
		pthread_mutex_unlock(&i->exports[n].lock);
		sum += t->n[n];
	}
	t->refused = host_metric(t->host, "i", "andiron_isolate_starts_total") >= 2;
	if (sum < t->most && !t->refused)
		return;
	host_stop(t->host);
	host_stop(t->host);
}

static void send_none(struct probe *p)
{
	struct target_list *list = target_list_new(p->instance);
	const struct andiron_targets *none;

	expect(list && target_list_flush(list, &none) == 0);
	p->host->send_targets(p->instance, "targets", none);
	none->release(none->owner);
	target_list_free(list);
}

/* Whether it is refused, when it makes these. */
static bool is_refused(const char *script, size_t most, size_t ret[3])
{
	static const struct andiron_export exports[] = {{"a", ANDIRON_EXPORT_TARGETS, 0, ""},
							{"b", ANDIRON_EXPORT_TARGETS, 0, ""},
							{"c", ANDIRON_EXPORT_TARGETS, 0, ""}};
	static struct andiron_component component; /* by it the program is found */
	struct lists t = {.producer.on_start = send_none, .most = most};
	struct plan *plan = test_plan();
	struct probe isolated = {0};
	uint32_t p = test_node(plan, "p", &test_producer, &t.producer);
	uint32_t i = test_node(plan, "i", &component, &isolated);

	test_targets(plan, p, i);
	component = (struct andiron_component){
		.size = sizeof(component),
		.name = script,
		.exports = exports,
		.n_exports = 3,
		.targets = test_writer.targets,
	};
	plan->nodes.p[i].isolate = true;
	t.host = test_host((struct host_options){.worker = WORKER});
	expect_eq(host_load(t.host, plan, NULL), 0);
	expect_eq(host_timer(t.host, NS_PER_MSEC, NS_PER_MSEC, on_list_tick, &t), 0);
	test_run(t.host, 0);
	host_free(t.host);
	memcpy(ret, t.n, sizeof(t.n));
	return t.refused;
}

/* What is bounded is what targets come to here, of each list by itself. */
TEST(targets_are_bounded_by_what_they_take)
{
	size_t n[3];

	expect(is_refused("makes.many", 300, n));
	expect_eq(n[0], 0);
	expect(is_refused("makes.apart", 260, n));
	expect_eq(n[0], 130);
	expect_eq(n[1], 1);
	expect(!is_refused("makes.three", 270, n));
}

/* Whoever has offered a batch that is dropped for want of memory hears that. */
TEST(an_offer_that_is_dropped_is_told)
{
	struct scene s = {.ends = true, .batch = test_batch(10, 0)};
	struct ledger_writer row = run_scene(&s, "keeps.spooled", false);

	batch_release(s.batch);
	expect(s.n_lost > 0);
	expect_eq(row.dropped, s.n_lost);
}

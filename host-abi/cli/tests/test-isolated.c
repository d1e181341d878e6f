/* SPDX-License-Identifier: Apache-2.0 */
/* Isolated components: a host with a writer, or a relay of targets, (unreliable.c) in a process of
 * `andiron worker`. */
#include "host/tests/test-support.h"

#include "host/isolate/isolated.h"
#include "host/registry/generation.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>

struct run {
	const char *fault;
	bool keeps;
	struct host *host;
	struct probe producer;
	uint64_t wanted; /* samples that are settled, or kept, when it may stop */
	bool stopped;
	rlim_t descriptors; /* as they were; 0: there are enough */
	bool without;       /* from the moment when it has died */
};

/* Takes descriptors away from this process, or gives them back. */
static void limit_descriptors(struct run *run, bool none)
{
	struct rlimit limit;

	if (none == (run->descriptors != 0))
		return;
	expect_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	if (none)
		run->descriptors = limit.rlim_cur;
	limit.rlim_cur = none ? 0 : run->descriptors;
	if (!none)
		run->descriptors = 0;
	expect_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void send_three(struct probe *p)
{
	test_take(p, 10, 0);
	test_take(p, 13, 0);
	test_take(p, 10, 0);
}

static void send_three_without_descriptors(struct probe *p)
{
	limit_descriptors(container_of(p, struct run, producer), true);
	send_three(p);
}

static uint64_t dropped(struct host *host)
{
	const struct ledger_writer *w = test_writer_row(host, "w");

	return w->dropped;
}

/* Once it has died there are none, until it could not be started. */
static void look_without(struct run *run)
{
	double up = host_metric(run->host, "w", "andiron_isolate_up");
	struct buf health = BUF_NULL;

	if (!(up < 1)) /* or not to be had now */
		return;
	limit_descriptors(run, true);
	expect_eq(host_health_json(run->host, &health), 0);
	expect_eq(buf_putc(&health, 0), 0);
	if (strstr(health.p, "Too many open files")) {
		run->without = false;
		limit_descriptors(run, false);
	}
	buf_free(&health);
	expect_eq(test_writer_row(run->host, "w")->spooled, 0);
}

/* Once all has come to where it stays. */
static void look(void *context)
{
	struct run *run = context;
	const struct ledger_writer *w;
	uint64_t at;

	if (run->stopped || !atomic_load(&run->producer.n_start))
		return;
	if (run->without) {
		look_without(run);
		return;
	}
	w = test_writer_row(run->host, "w");
	at = w->delivered + w->dropped;
	if (run->keeps)
		at += host_metric(run->host, "w", "andiron_isolate_up") > 0 ? w->in_flight : 0;
	if (at < run->wanted)
		return;
	run->stopped = true;
	host_stop(run->host);
}

static struct registered_component registered(int component)
{
	static struct registered_plugin plugin;
	struct error err = ERROR_NULL;

	expect_eq(registry_load(UNRELIABLE, &plugin.plugin, NULL, &err), 0);
	plugin.path = UNRELIABLE;
	plugin.outline = plugin.plugin;
	plugin.generation = generation_of(plugin.plugin);
	plugin.fd = -1;
	return (struct registered_component){plugin.plugin->components[component], &plugin};
}

static struct plan *plan_of(struct run *run)
{
	struct plan *plan = test_plan();
	struct registered_component *writer = arena_alloc(&plan->arena, sizeof(*writer));
	struct andiron_value *args = arena_alloc(&plan->arena, 3 * sizeof(*args));
	struct andiron_str *keys = arena_alloc(&plan->arena, 2 * sizeof(*keys));
	uint32_t producer = test_node(plan, "p", &test_producer, &run->producer);

	expect(writer && args && keys);
	*writer = registered(0);
	keys[0] = (struct andiron_str){"fault", 5};
	keys[1] = (struct andiron_str){"keeps", 5};
	args[1] = (struct andiron_value){.kind = ANDIRON_VALUE_STRING,
					 .string = {run->fault, strlen(run->fault)}};
	args[2] = (struct andiron_value){.kind = ANDIRON_VALUE_BOOL, .integer = run->keeps};
	args[0] = (struct andiron_value){
		.kind = ANDIRON_VALUE_MAP, .keys = keys, .items = args + 1, .n_items = 2};
	expect(vec_push(&plan->nodes,
			((struct plan_node){
				.id = "w", .registered = writer, .args = args, .isolate = true})));
	test_batches(plan, producer, producer + 1);
	return plan;
}

static struct host *run_it(struct run *run, int64_t call_ns, int expected)
{
	struct error err = ERROR_NULL;

	if (!run->producer.on_start)
		run->producer.on_start = send_three;
	run->wanted = 33;
	run->host = test_host((struct host_options){.worker = ANDIRON_COMMAND_BUILT,
						    .isolate_call_ns = call_ns,
						    .drain_ns = 60 * NS_PER_SEC});
	expect_eq(host_load(run->host, plan_of(run), &err), 0);
	expect_eq(host_timer(run->host, NS_PER_MSEC, 10 * NS_PER_MSEC, look, run), 0);
	test_run(run->host, expected);
	return run->host;
}

/* What it is given is delivered as by any other, and its metrics are seen. */
TEST(delivers_all)
{
	struct run run = {.fault = ""};
	struct host *host = run_it(&run, 0, 0);

	expect_eq(test_writer_row(host, "w")->delivered, 33);
	expect_eq(dropped(host), 0);
	host_free(host);
}

static void loses_one(const char *fault, const char *reason, int64_t call_ns)
{
	struct run run = {.fault = fault};
	struct host *host = run_it(&run, call_ns, 0);

	expect_eq(test_writer_row(host, "w")->delivered, 20);
	expect_eq(test_dropped(host, "w", reason), 13);
	expect_eq(dropped(host), 13);
	host_free(host);
}

/* Whatever it does, it costs the batch in its hands, and that by its own reason; the others are
 * delivered by the next process. */
TEST(a_crash_costs_one_batch)
{
	loses_one("crash", "w:isolate_died", 0);
}

TEST(a_hang_costs_one_batch)
{
	loses_one("hang", "w:isolate_hung", 5 * NS_PER_SEC);
}

TEST(a_lie_costs_one_batch)
{
	loses_one("lie", "w:isolate_lied", 0);
}

TEST(junk_costs_one_batch)
{
	loses_one("junk", "w:isolate_lied", 0);
}

/* What it had kept is given to the next process again. */
TEST(what_was_kept_is_given_again)
{
	struct run run = {.fault = "crash", .keeps = true};
	struct host *host = run_it(&run, 0, 0);

	expect_eq(test_writer_row(host, "w")->delivered, 20);
	expect_eq(test_dropped(host, "w", "w:isolate_died"), 13);
	host_free(host);
}

/* What cannot be handed over is lost and counted, and the process is none the worse. */
TEST(what_cannot_be_handed_over_is_dropped)
{
	struct run run = {.fault = "", .producer.on_start = send_three_without_descriptors};
	struct host *host = run_it(&run, 0, 0);

	limit_descriptors(&run, false);
	expect_eq(test_dropped(host, "w", "w:no_memory"), 33);
	expect_eq(dropped(host), 33);
	expect(host_metric(host, "w", "andiron_isolate_starts_total") == 1);
	host_free(host);
}

/* One that cannot be started again for a while has nothing in its store meanwhile. */
TEST(books_close_while_none_can_be_started)
{
	struct run run = {.fault = "crash", .without = true};
	struct host *host = run_it(&run, 0, 0);

	expect_eq(test_writer_row(host, "w")->delivered, 20);
	expect_eq(test_dropped(host, "w", "w:isolate_died"), 13);
	expect_eq(test_writer_row(host, "w")->spooled, 0);
	host_free(host);
}

static void fails(const char *fault, const char *word)
{
	struct run run = {.fault = fault};
	struct host *host = run_it(&run, 0, -EIO);

	expect(strstr(host->failed_cause, word));
	host_free(host);
}

/* One that does not start is a component that does not start, for the reason that it gives. */
TEST(a_start_that_fails_says_why)
{
	fails("start", "signal 9 ended it");
	fails("refuse", "no such luck");
}

/* A list that the producer makes → the relay, in its process → the writer. */
struct relayed {
	struct host *host;
	struct probe producer, writer;
	struct target_list *list;
	uint64_t generation, row;
	struct run limits;
	int step;
};

static void set_row(struct target_list *list, uint64_t row, const char *value)
{
	struct target_label label = {STR("name"), str_of(value)};

	expect_eq(target_list_set(list, row, row, &label, 1), 0);
}

static void send_list(struct relayed *t)
{
	static struct andiron_targets said[16]; /* as long as anybody may look */
	struct andiron_targets *next = &said[t->generation % 16];
	const struct andiron_targets *update;

	expect_eq(target_list_flush(t->list, &update), 0);
	*next = *update;
	next->generation = ++t->generation;
	expect_eq(t->producer.host->send_targets(t->producer.instance, "targets", next), 0);
	update->release(update->owner);
}

static double relay_metric(const struct relayed *t, const char *name)
{
	return host_metric(t->host, "r", name);
}

/* How many there are; once there were some they do not vanish. */
static size_t n_relayed(const struct relayed *t)
{
	size_t n = target_table_count(t->writer.table);

	expect(t->step == 0 || n > 0);
	return n;
}

static void look_at_relay(void *context)
{
	struct relayed *t = context;

	if (!atomic_load(&t->producer.n_start) || !t->writer.table)
		return;
	if (t->step == 0 && n_relayed(t) == 1) {
		t->step = 1;
		set_row(t->list, 2, "crash");
		send_list(t);
	} else if (t->step == 1 && relay_metric(t, "andiron_isolate_starts_total") >= 3) {
		/* It has died of it again, and what there was is there. */
		expect_eq(n_relayed(t), 1);
		t->step = 2;
		set_row(t->list, 2, "b");
		set_row(t->list, 3, "c");
		send_list(t);
	} else if (t->step == 2 && n_relayed(t) == 3) {
		t->step = 3;
		target_list_remove(t->list, 1);
		send_list(t);
	} else if (t->step == 3 && n_relayed(t) == 2) {
		t->step = 4;
		host_stop(t->host);
	}
	n_relayed(t);
}

static void begin_list(struct probe *p)
{
	struct relayed *t = container_of(p, struct relayed, producer);

	set_row(t->list, 1, "a");
	send_list(t);
}

static void add_node(struct plan *plan, const char *id, int component)
{
	static const struct andiron_value nothing = {.kind = ANDIRON_VALUE_MAP};
	struct registered_component *c = arena_alloc(&plan->arena, sizeof(*c));

	expect(c);
	*c = registered(component);
	expect(vec_push(&plan->nodes, ((struct plan_node){.id = id,
							  .registered = c,
							  .args = &nothing,
							  .isolate = true})));
}

static void run_relayed(struct relayed *t, struct plan *plan, void (*look_at)(void *context))
{
	t->host = test_host((struct host_options){.worker = ANDIRON_COMMAND_BUILT,
						  .drain_ns = 60 * NS_PER_SEC});
	expect_eq(host_load(t->host, plan, NULL), 0);
	expect_eq(host_timer(t->host, NS_PER_MSEC, 10 * NS_PER_MSEC, look_at, t), 0);
	test_run(t->host, 0);
	host_free(t->host);
	target_list_free(t->list);
}

static void run_relay(struct relayed *t, const struct andiron_component *producer,
		      void (*look_at)(void *context))
{
	struct plan *plan = test_plan();
	uint32_t p = test_node(plan, "p", producer, &t->producer);

	t->producer.on_start = begin_list;
	t->list = target_list_new(7);
	expect(t->list);
	add_node(plan, "r", 1);
	test_targets(plan, p, p + 1);
	test_targets(plan, p + 1, test_node(plan, "w", &test_writer, &t->writer));
	run_relayed(t, plan, look_at);
}

/* Targets pass through a process; those of one that dies stay until the next one has its own. */
TEST(targets_outlive_the_process)
{
	struct relayed t = {0};

	run_relay(&t, &test_producer, look_at_relay);
	expect_eq(t.step, 4);
}

static void look_for_none(void *context)
{
	struct relayed *t = context;
	size_t n = t->writer.table ? target_table_count(t->writer.table) : 0;

	if (t->step == 0 && n == 1) {
		t->step = 1;
		set_row(t->list, 1, "crash");
		send_list(t);
	} else if (t->step == 1 && relay_metric(t, "andiron_isolate_up") < 1) {
		expect_eq(n, 1);
		t->step = 2;
		target_list_remove(t->list, 1);
		send_list(t);
	} else if (t->step == 2 && n == 0) {
		t->step = 3;
		host_stop(t->host);
	}
}

/* It is asked when there is nothing to say. */
static void resend_none(void *self, const char *export_name)
{
}

/* The target that a process has died of was the last, and is gone before the next one begins: of a
 * producer that has said it says nothing then. */
TEST(targets_of_a_process_that_died_go_with_the_last)
{
	struct andiron_component producer = test_producer;
	struct relayed t = {0};

	producer.resend = resend_none;
	run_relay(&t, &producer, look_for_none);
	expect_eq(t.step, 3);
}

static void look_while_short(void *context)
{
	struct relayed *t = context;
	size_t n = t->writer.table ? target_table_count(t->writer.table) : 0;

	if (t->step == 0 && n == 1) {
		t->step = 1;
		limit_descriptors(&t->limits, true);
		set_row(t->list, 2, "b");
		send_list(t);
	} else if (t->step == 1) {
		t->step = 2;
		limit_descriptors(&t->limits, false);
	} else if (t->step == 2 && n == 2) {
		t->step = 3;
		expect(relay_metric(t, "andiron_isolate_starts_total") == 1);
		host_stop(t->host);
	}
}

/* What cannot be handed over now waits, and the process is none the worse. */
TEST(targets_wait_while_descriptors_are_short)
{
	struct relayed t = {0};

	run_relay(&t, &test_producer, look_while_short);
	expect_eq(t.step, 3);
}

static void note_row(void *context, int change, struct target_row *row)
{
	*(uint64_t *)context = row->row;
}

/* Until there is the target of a second process; there always is one. */
static void look_at_source(void *context)
{
	struct relayed *t = context;
	uint64_t row = 0;

	if (!t->writer.table || n_relayed(t) == 0)
		return;
	target_table_each(t->writer.table, note_row, &row);
	if (t->step == 0)
		t->row = row;
	t->step = 1;
	if (row != t->row)
		host_stop(t->host);
}

/* A process that begins without any targets leaves those of the one before. */
TEST(an_empty_list_is_no_first_one)
{
	struct relayed t = {0};
	struct plan *plan = test_plan();

	add_node(plan, "r", 2);
	test_targets(plan, 0, test_node(plan, "w", &test_writer, &t.writer));
	run_relayed(&t, plan, look_at_source);
	expect_eq(t.step, 1);
}

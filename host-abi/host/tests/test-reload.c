/* SPDX-License-Identifier: Apache-2.0 */
/* From one plan to another while it runs, and targets for whoever comes late. */
#include "host/tests/test-support.h"

#include <errno.h>

/* Drives a host round by round, as host_run does, so that a test can look and act in between. */
struct drive {
	struct host *host;
	void (*then)(struct drive *d); /* once, when everything is live */
	struct probe a, f, w, x;
	int result;
	struct error err;
};

static void drive_live(void *context, const char *failed)
{
	struct drive *d = context;

	d->then(d);
	host_stop(d->host);
}

static void drive_run(struct drive *d, struct plan *plan, void (*then)(struct drive *d))
{
	d->then = then;
	d->host = test_host((struct host_options){.live = drive_live, .context = d});
	expect_eq(host_load(d->host, plan, NULL), 0);
	test_run(d->host, 0);
	host_free(d->host);
}

static struct plan *pipeline(struct drive *d)
{
	struct plan *plan = test_plan();
	uint32_t a = test_node(plan, "a", &test_producer, &d->a);
	uint32_t f = test_node(plan, "f", &test_forward, &d->f);
	uint32_t w = test_node(plan, "w", &test_writer, &d->w);

	test_batches(plan, a, f);
	test_batches(plan, f, w);
	test_targets(plan, a, f);
	return plan;
}

/* Arguments that differ, so that they are updated. */
static void change_args(struct plan *plan, uint32_t node)
{
	struct andiron_value *args = arena_alloc(&plan->arena, sizeof(*args));

	*args = *plan->nodes.p[node].args;
	args->n_items = 0;
	args->string = (struct andiron_str){"changed", 7};
	plan->nodes.p[node].args = args;
}

static void same_plan(struct drive *d)
{
	expect_eq(host_reload(d->host, pipeline(d), &d->err), 0);
}

/* The same again changes nothing and calls nobody. */
TEST(an_equal_plan_changes_nothing)
{
	struct drive d = {0};

	drive_run(&d, pipeline(&d), same_plan);
	expect_eq(d.a.n_create + d.f.n_create + d.w.n_create, 3);
	expect_eq(d.a.n_update + d.f.n_update + d.w.n_update, 0);
}

static void update_one(struct drive *d)
{
	struct plan *plan = pipeline(d);

	change_args(plan, 1);
	expect_eq(host_reload(d->host, plan, &d->err), 0);
}

TEST(changed_arguments_are_updated)
{
	struct drive d = {0};

	drive_run(&d, pipeline(&d), update_one);
	expect_eq(d.f.n_update, 1);
	expect_eq(d.f.n_create, 1);
}

static void refuse_one(struct drive *d)
{
	struct plan *plan = pipeline(d);

	change_args(plan, 0);
	change_args(plan, 1);
	d->x = (struct probe){0};
	test_node(plan, "x", &test_writer, &d->x);
	d->f.fail_update = -EINVAL;
	expect_eq(host_reload(d->host, plan, &d->err), -EINVAL);
	expect_str(str_of(d->err.text), "f: rate: too high");
	expect_eq(d->x.n_destroy, 1);
	/* The one before it was taken back. */
	expect_eq(d->a.n_update, 2);
	expect_eq(d->host->instances.n, 3);
	test_take(&d->a, 5, 0);
}

/* All or nothing: who refuses makes the others go back, and all goes on. */
TEST(a_refused_update_takes_everything_back)
{
	struct drive d = {0};

	drive_run(&d, pipeline(&d), refuse_one);
	expect_eq(d.w.samples, 5);
	expect_eq(d.x.n_start, 0);
}

/* The node is the same, its arguments (the probe) are others. */
static struct plan *other_writer(struct drive *d)
{
	struct plan *plan = test_plan();
	uint32_t a = test_node(plan, "a", &test_producer, &d->a);
	uint32_t f = test_node(plan, "f", &test_forward, &d->f);
	uint32_t w = test_node(plan, "w", &test_writer, &d->x);

	test_batches(plan, a, f);
	test_batches(plan, f, w);
	test_targets(plan, a, f);
	return plan;
}

static void cannot_update(struct drive *d)
{
	d->w.fail_update = -EOPNOTSUPP;
	test_take(&d->a, 7, 0);
	expect_eq(host_reload(d->host, other_writer(d), &d->err), 0);
	test_take(&d->a, 1, 0);
}

/* Who cannot be updated is replaced while it runs: the old one drains, nothing is lost, and the
 * books of both are one row. */
TEST(who_cannot_update_is_replaced)
{
	struct drive d = {0};

	drive_run(&d, pipeline(&d), cannot_update);
	expect_eq(d.w.samples + d.x.samples, 8);
	expect(d.x.samples >= 1);
	expect_eq(d.w.n_destroy + d.x.n_destroy, 2);
}

static struct plan *with_writer(struct drive *d, bool old, bool new)
{
	struct plan *plan = test_plan();
	uint32_t a = test_node(plan, "a", &test_producer, &d->a);
	uint32_t f = test_node(plan, "f", &test_forward, &d->f);

	test_batches(plan, a, f);
	if (old)
		test_batches(plan, f, test_node(plan, "w", &test_writer, &d->w));
	if (new)
		test_batches(plan, f, test_node(plan, "x", &test_writer, &d->x));
	return plan;
}

static void add_then_remove(struct drive *d)
{
	test_take(&d->a, 100, 0);
	expect_eq(host_reload(d->host, with_writer(d, true, true), &d->err), 0);
	test_take(&d->a, 10, 0);
	expect_eq(host_reload(d->host, with_writer(d, false, true), &d->err), 0);
	test_take(&d->a, 1, 0);
}

/* Writers come and go with batches under way; every sample is accounted for in both rows (test_run
 * looks). */
TEST(writers_come_and_go_without_losing_count)
{
	for (int i = 0; i < 50; i++) {
		struct drive d = {0};

		drive_run(&d, with_writer(&d, true, false), add_then_remove);
		expect_eq(d.w.n_destroy + d.x.n_destroy, 2);
		expect(d.x.samples >= 1 && d.w.samples >= 100 - d.x.samples);
	}
}

static void remove_and_look(struct drive *d)
{
	struct buf page = BUF_NULL;

	expect_eq(host_reload(d->host, with_writer(d, false, true), &d->err), 0);
	test_until(d->host, &d->w.n_destroy, 1);
	do {
		buf_clear(&page);
		host_step(d->host);
		expect_eq(host_metrics(d->host, &page), 0);
	} while (str_search(buf_str(&page), STR("component_id=\"w\"")) < page.n);
	expect(str_search(buf_str(&page), STR("component_id=\"x\"")) < page.n);
	buf_free(&page);
}

/* The series of a component that a change removes leave the page; else a dashboard shows it for as
 * long as the process lives. Does not end if they stay. */
TEST(metrics_of_removed_components_are_forgotten)
{
	struct drive d = {0};

	drive_run(&d, with_writer(&d, true, true), remove_and_look);
}

static void stop_within(struct drive *d)
{
	host_stop(d->host);
	expect_eq(host_reload(d->host, pipeline(d), &d->err), -ECANCELED);
}

TEST(a_stopping_host_takes_no_plan)
{
	struct drive d = {0};

	drive_run(&d, pipeline(&d), stop_within);
	expect_eq(d.a.n_destroy, 1);
}

static void again(void *context)
{
	struct drive *d = context;

	d->result = host_reload(d->host, pipeline(d), &d->err);
}

static void post_sem(void *context)
{
	sem_post(context);
}

static void busy(struct drive *d)
{
	struct plan *plan = pipeline(d);
	sem_t go, in_batch;

	/* The forwarder is in a call while the plan changes, so its update waits, and another
	 * change meanwhile is refused. */
	sem_init(&go, 0, 0);
	sem_init(&in_batch, 0, 0);
	d->f.block_batch = &go;
	d->f.in_batch = &in_batch;
	test_take(&d->a, 3, 0);
	sem_wait(&in_batch);
	expect_eq(host_timer(d->host, NS_PER_MSEC, 0, again, d), 0);
	expect_eq(host_timer(d->host, 5 * NS_PER_MSEC, 0, post_sem, &go), 0);
	change_args(plan, 1);
	expect_eq(host_reload(d->host, plan, &d->err), 0);
	expect_eq(d->result, -EBUSY);
	expect_eq(d->f.n_update, 1);
	d->f.block_batch = NULL;
	d->f.in_batch = NULL;
}

/* A component that is in a call does not stop the loop: the change waits. */
TEST(an_update_waits_for_its_turn)
{
	struct drive d = {0};

	drive_run(&d, pipeline(&d), busy);
	expect_eq(d.w.samples, 3);
}

/* Sends rows as a list does: a snapshot first, then differences. */
static struct target_list *list;

static void set_row(uint64_t row, const char *value)
{
	struct target_label label = {STR("k"), str_of(value)};

	expect_eq(target_list_set(list, row, row, &label, 1), 0);
}

static void flush(struct probe *p)
{
	const struct andiron_targets *update;

	expect_eq(target_list_flush(list, &update), 0);
	expect_eq(p->host->send_targets(p->instance, "targets", update), 0);
	expect_eq(p->host->send_targets(p->instance, "other", update), -EINVAL);
	/* The same again is a gap. */
	if (!(update->flags & ANDIRON_TARGETS_SNAPSHOT))
		expect_eq(p->host->send_targets(p->instance, "targets", update), -EINVAL);
	update->release(update->owner);
}

static void send_rows(struct probe *p)
{
	list = target_list_new(p->instance);
	for (uint64_t i = 0; i < 100; i++)
		set_row(i, "v");
	flush(p);
	target_list_remove(list, 7);
	set_row(8, "changed");
	set_row(200, "new");
	flush(p);
}

static struct plan *targets_plan(struct drive *d, bool late, const char *literal)
{
	struct plan *plan = test_plan();
	uint32_t a = test_node(plan, "a", &test_producer, &d->a);
	uint32_t f = test_node(plan, "f", &test_forward, &d->f);

	test_targets(plan, a, f);
	if (literal)
		test_literal(plan, f, "k", literal);
	if (late)
		test_targets(plan, a, test_node(plan, "w", &test_writer, &d->w));
	return plan;
}

static void late_consumer(struct drive *d)
{
	struct plan *plan;

	expect_eq(target_table_count(d->f.table), 101);
	expect_eq(host_reload(d->host, targets_plan(d, true, "two"), &d->err), 0);
	test_until(d->host, &d->w.n_targets, 1);
	expect_eq(target_table_count(d->w.table), 100);
	/* From here on both get differences. */
	set_row(300, "newer");
	flush(&d->a);
	test_until(d->host, &d->w.n_targets, 2);
	expect_eq(target_table_count(d->w.table), 101);
	test_until(d->host, &d->f.n_targets, 5);
	expect_eq(target_table_count(d->f.table), 102);
	/* The producer's edge and the literal go. */
	plan = test_plan();
	test_node(plan, "f", &test_forward, &d->f);
	expect_eq(host_reload(d->host, plan, &d->err), 0);
	test_until(d->host, &d->f.n_targets, 7);
	expect_eq(target_table_count(d->f.table), 0);
}

/* Who comes late gets a snapshot and then differences that continue it; a literal changes by
 * difference; who loses a producer loses its rows. */
TEST(late_consumers_get_snapshots)
{
	struct drive d = {.a.on_start = send_rows};

	drive_run(&d, targets_plan(&d, false, "one"), late_consumer);
	target_list_free(list);
}

/* --- Producers of which no copy is kept --- */

static atomic_int n_resends;
static uint64_t generation;

/* Says all rows again as replaced ones, and none of what is gone. */
static void resend(void *self, const char *export_name)
{
	static struct andiron_targets said[2]; /* as long as anybody may look */
	struct andiron_targets *again = &said[n_resends % 2];
	const struct andiron_targets *all;
	struct probe *p = self;

	expect_str(str_of(export_name), "targets");
	n_resends++;
	expect_eq(target_list_snapshot(list, &all), 0);
	*again = *all;
	again->flags = 0;
	again->generation = ++generation;
	again->n_added = 0;
	expect_eq(p->host->send_targets(p->instance, "targets", again), 0);
	all->release(all->owner);
}

static struct andiron_component repeating;

static void send_first(struct probe *p)
{
	const struct andiron_targets *update;

	list = target_list_new(p->instance);
	for (uint64_t i = 0; i < 100; i++)
		set_row(i, "v");
	expect_eq(target_list_flush(list, &update), 0);
	expect_eq(p->host->send_targets(p->instance, "targets", update), 0);
	generation = update->generation;
	update->release(update->owner);
}

static struct plan *repeating_plan(struct drive *d, bool late)
{
	struct plan *plan = test_plan();
	uint32_t a, f;

	repeating = test_producer;
	repeating.resend = resend;
	a = test_node(plan, "a", &repeating, &d->a);
	f = test_node(plan, "f", &test_forward, &d->f);
	test_targets(plan, a, f);
	if (late)
		test_targets(plan, a, test_node(plan, "w", &test_writer, &d->w));
	return plan;
}

static bool shows(struct export *e, size_t n)
{
	bool whole;

	pthread_mutex_lock(&e->lock);
	whole = e->whole;
	expect(!whole || target_table_count(e->table) == n);
	pthread_mutex_unlock(&e->lock);
	return whole;
}

/* Who looks has the rows kept, and said once; what changes later is in them. They go with an update
 * long after the last look. */
static void expect_shown(struct drive *d)
{
	struct export *e = &d->host->instances.p[0]->exports[0];
	const struct andiron_targets *update;

	expect(!e->table);
	export_look(e);
	test_until(d->host, &d->w.n_targets, 4);
	while (!shows(e, 100))
		sched_yield();
	export_look(e);
	expect_eq(n_resends, 3);
	expect_eq(target_table_count(d->w.table), 100);
	for (int i = 0; i < 2; i++) {
		static struct andiron_targets fewer[2];

		target_list_remove(list, (uint64_t)i);
		expect_eq(target_list_flush(list, &update), 0);
		fewer[i] = *update;
		fewer[i].generation = ++generation;
		expect_eq(export_send(e, &fewer[i]), 0);
		update->release(update->owner);
		expect(i ? !e->table : shows(e, 99));
		e->looked_ns -= 2 * EXPORT_LOOK_NS;
	}
	test_until(d->host, &d->w.n_targets, 6);
	expect_eq(target_table_count(d->w.table), 98);
}

static void late_and_asking(struct drive *d)
{
	expect_eq(n_resends, 0); /* who is there from the start needs nothing again */
	expect_eq(target_table_count(d->f.table), 100);
	expect_eq(host_reload(d->host, repeating_plan(d, true), &d->err), 0);
	test_until(d->host, &d->w.n_targets, 2);
	expect_eq(n_resends, 1);
	expect_eq(target_table_count(d->w.table), 100);
	expect_eq(target_table_count(d->f.table), 100);
	/* Asked for twice before it begins, it is said once; to both, as ever. */
	d->f.host->request_targets(d->f.instance, "targets");
	d->f.host->request_targets(d->f.instance, "targets");
	d->f.host->request_targets(d->f.instance, "no such port");
	test_until(d->host, &d->w.n_targets, 3);
	expect_eq(n_resends, 2);
	expect_eq(target_table_count(d->w.table), 100);
	expect_shown(d);
}

/* Of a producer that can say its targets again the host keeps none: who comes late, and who asks,
 * gets all of them from the producer itself. */
TEST(who_can_say_it_again_is_asked)
{
	struct drive d = {.a.on_start = send_first};

	drive_run(&d, repeating_plan(&d, false), late_and_asking);
	target_list_free(list);
}

/* --- The order of lists --- */

static void add_letter(void *context, int change, struct target_row *row)
{
	char *text = context;

	text[strlen(text)] = target_label_value(row, "k").p[0];
}

static void expect_order(struct probe *p, const char *wanted)
{
	char text[16] = "";

	target_table_each(p->table, add_letter, text);
	expect_str(str_of(text), wanted);
}

static void send_one(struct probe *p)
{
	const struct andiron_targets *update;

	list = target_list_new(p->instance);
	set_row(1, "component");
	expect_eq(target_list_flush(list, &update), 0);
	expect_eq(p->host->send_targets(p->instance, "targets", update), 0);
	update->release(update->owner);
}

/* The same component before, between and behind literals. */
static struct plan *ordered_plan(struct drive *d, const char *places)
{
	struct plan *plan = test_plan();
	uint32_t a = test_node(plan, "a", &test_producer, &d->a);
	uint32_t f = test_node(plan, "f", &test_forward, &d->f);

	for (; *places; places++) {
		if (*places == 'c')
			test_targets(plan, a, f);
		else
			test_literal(plan, f, "k", *places == 'x' ? "x" : "y");
	}
	return plan;
}

static void reorder(struct drive *d)
{
	expect_order(&d->f, "xcyc");
	expect_eq(host_reload(d->host, ordered_plan(d, "cy"), &d->err), 0);
	/* Four that go, two that come. */
	test_until(d->host, &d->f.n_targets, 10);
	expect_order(&d->f, "cy");
}

/* array.concat keeps the order of its lists, literals among components, and a list that stands
 * twice is there twice. */
TEST(lists_keep_their_order)
{
	struct drive d = {.a.on_start = send_one};

	drive_run(&d, ordered_plan(&d, "xcyc"), reorder);
	target_list_free(list);
}

/* --- Many --- */

#define N_MANY 400

static struct probe many[N_MANY];
static char many_names[N_MANY][8];

/* Every `step`th, the last one first. */
static struct plan *many_plan(unsigned int step, const char *value)
{
	struct plan *plan = test_plan();

	for (unsigned int i = N_MANY; i-- > 0;) {
		if (i % step)
			continue;
		snprintf(many_names[i], sizeof(many_names[i]), "n%u", i);
		test_literal(plan, test_node(plan, many_names[i], &test_forward, &many[i]), "k",
			     i ? "same" : value);
	}
	return plan;
}

static void keep_half(struct drive *d)
{
	expect_eq(host_reload(d->host, many_plan(2, "y"), &d->err), 0);
	test_until(d->host, &many[0].n_targets, 2);
	for (unsigned int i = 0; i < N_MANY; i++) {
		if (i % 2)
			test_until(d->host, &many[i].n_destroy, 1);
		expect_eq(many[i].n_create, 1);
		expect_eq(many[i].n_update, 0);
		expect_eq(many[i].n_destroy, i % 2);
		if (i && i % 2 == 0)
			expect_eq(many[i].n_targets, 1);
	}
	expect_order(&many[0], "y");
	expect_order(&many[2], "s");
	expect_eq(host_reload(d->host, many_plan(1, "y"), &d->err), 0);
	test_until(d->host, &many[1].n_start, 2);
	expect_eq(many[1].n_create, 2);
	expect_eq(many[2].n_create, 1);
}

/* Whatever the order, each is found by its name, its list of targets with it. */
TEST(many_are_found_again)
{
	struct drive d = {0};

	drive_run(&d, many_plan(1, "x"), keep_half);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime as a whole: life cycle, flow, order, ledger. */
#include "host/tests/test-support.h"

#include <errno.h>
#include <unistd.h>

/* Until all is live; then it drains. The run ends with r. */
static struct host *run_until_live(struct plan *plan, int r)
{
	struct host *host =
		test_host((struct host_options){.live = test_stop_live, .context = &host});

	expect_eq(host_load(host, plan, NULL), 0);
	test_run(host, r);
	return host;
}

/* A producer before a writer. */
static struct host *run_pair(struct probe *a, struct probe *w)
{
	struct plan *plan = test_plan();
	uint32_t na = test_node(plan, "a", &test_producer, a);
	uint32_t nw = test_node(plan, "w", &test_writer, w);

	test_batches(plan, na, nw);
	return run_until_live(plan, 0);
}

static void take_three(struct probe *p)
{
	for (int i = 0; i < 3; i++)
		test_take(p, 100, 0);
}

/* Everything that is taken arrives, also what is sent while draining; the life cycle is whole and
 * in order: consumers start first, producers drain first. */
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
	host = run_until_live(plan, 0);
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
	host = run_until_live(plan, -EIO);
	expect_eq(c.samples, 300);
	expect_eq(test_dropped(host, "b", "b:not_started"), 300);
	expect_eq(b.n_stop, 1);
	expect_eq(b.n_destroy, 1);
	host_free(host);
}

/* The batch of ten thousand is the same one for both writers: shared, not copied. */
static const struct andiron_batch *sent;

static void send_one(struct probe *p)
{
	sent = test_batch(10, 0);
	p->host->ledger_add(p->instance, ANDIRON_LEDGER_TAKEN, NULL, 10);
	expect_eq(p->host->send_batch(p->instance, sent), 0);
}

TEST(fan_out_shares_the_batch)
{
	struct probe a = {.on_start = send_one}, b = {0}, c = {0};
	struct host *host;
	struct plan *plan = test_plan();
	uint32_t na = test_node(plan, "a", &test_producer, &a);
	uint32_t nb = test_node(plan, "b", &test_writer, &b);
	uint32_t nc = test_node(plan, "c", &test_writer, &c);

	test_batches(plan, na, nb);
	test_batches(plan, na, nc);
	test_batches(plan, na, nc); /* naming it twice is naming it once */
	host = run_until_live(plan, 0);
	expect(b.last_batch == sent && c.last_batch == sent);
	expect_eq(c.n_batch, 1);
	batch_release(sent);
	host_free(host);
}

/* A diamond brings each sample twice, and the books know. */
TEST(two_paths_are_two_deliveries)
{
	struct probe a = {.on_start = take_three}, l = {0}, r = {0}, w = {0};
	struct host *host;
	struct plan *plan = test_plan();
	uint32_t na = test_node(plan, "a", &test_producer, &a);
	uint32_t nl = test_node(plan, "l", &test_forward, &l);
	uint32_t nr = test_node(plan, "r", &test_forward, &r);
	uint32_t nw = test_node(plan, "w", &test_writer, &w);

	test_batches(plan, na, nl);
	test_batches(plan, na, nr);
	test_batches(plan, nl, nw);
	test_batches(plan, nr, nw);
	host = run_until_live(plan, 0);
	expect_eq(test_writer_row(host, "w")->delivered, 600);
	expect_eq(host_ledger(host)->taken, 300);
	host_free(host);
}

/* A consumer that blocks holds up neither the loop nor the producer nor the other consumer; its
 * queue is bounded, and what overflows is charged to it alone. */
struct blocked {
	struct host *host;
	struct probe *producer, *slow, *other;
	sem_t go;
	bool done;
};

static void send_many(struct probe *p)
{
	for (int i = 0; i < 100; i++)
		test_take(p, 1, 1000);
}

static void tick(void *context)
{
	struct blocked *b = context;

	/* When all is sent, and the other one has got what it could. */
	if (b->done || b->producer->n_start == 0 || !queue_idle(host_instance_of(b->other)))
		return;
	b->done = true;
	for (int i = 0; i < 100; i++)
		sem_post(&b->go);
	host_stop(b->host);
}

TEST(a_blocked_consumer_blocks_nobody)
{
	struct blocked blocked = {0};
	struct probe a = {.on_start = send_many}, slow = {.block_batch = &blocked.go}, c = {0};
	struct plan *plan = test_plan();
	uint32_t na = test_node(plan, "a", &test_producer, &a);
	uint32_t nb = test_node(plan, "slow", &test_writer, &slow);
	uint32_t nc = test_node(plan, "c", &test_writer, &c);

	test_batches(plan, na, nb);
	test_batches(plan, na, nc);
	sem_init(&blocked.go, 0, 0);
	blocked.producer = &a;
	blocked.other = &c;
	/* a is in a worker of its own while slow holds another. */
	blocked.host = test_host((struct host_options){.queue_bytes = 10000, .workers = 3});
	expect_eq(host_load(blocked.host, plan, NULL), 0);
	expect_eq(host_timer(blocked.host, NS_PER_MSEC, NS_PER_MSEC, tick, &blocked), 0);
	test_run(blocked.host, 0);
	/* Ten fit, and one may have been taken out. */
	expect(test_dropped(blocked.host, "slow", "slow:queue_full") >= 89);
	expect(test_dropped(blocked.host, "slow", "slow:queue_full") <= 90);
	expect_eq(test_dropped(blocked.host, "c", "slow:queue_full"), 0);
	expect_eq(c.samples + test_dropped(blocked.host, "c", "c:queue_full"), 100);
	expect_eq(test_writer_row(blocked.host, "slow")->in_flight, 0);
	host_free(blocked.host);
}

/* What cannot be delivered by the deadline is counted, and the host ends. */
static void release_slow(void *context)
{
	struct blocked *b = context;
	struct instance *slow = host_instance_of(b->slow);

	/* Once the queue was dropped at the deadline. */
	if (slow && b->host->n_stops_seen > 0 && queue_bytes(slow) == 0)
		for (int i = 0; i < 100; i++)
			sem_post(&b->go);
}

TEST(the_deadline_ends_a_drain)
{
	struct blocked blocked = {0};
	struct probe a = {.on_start = send_many}, slow = {.block_batch = &blocked.go};
	struct plan *plan = test_plan();
	uint32_t na = test_node(plan, "a", &test_producer, &a);
	uint32_t nb = test_node(plan, "slow", &test_writer, &slow);

	test_batches(plan, na, nb);
	sem_init(&blocked.go, 0, 0);
	blocked.slow = &slow;
	blocked.host = test_host((struct host_options){
		.drain_ns = NS_PER_SEC, .live = test_stop_live, .context = &blocked.host});
	expect_eq(host_load(blocked.host, plan, NULL), 0);
	expect_eq(host_timer(blocked.host, NS_PER_MSEC, NS_PER_MSEC, release_slow, &blocked), 0);
	test_run(blocked.host, 0);
	expect_eq(test_dropped(blocked.host, "slow", "slow:deadline"), 99);
	expect_eq(test_writer_row(blocked.host, "slow")->delivered, 1);
	expect_eq(slow.n_stop, 1);
	host_free(blocked.host);
}

/* A writer that never says that it has drained: its level stays on the books as in flight. */
TEST(what_a_writer_keeps_stays_on_the_books)
{
	struct probe a = {.on_start = take_three}, w = {.no_deliver = true};
	struct host *host = run_pair(&a, &w);

	expect_eq(test_writer_row(host, "w")->delivered, 300); /* at its drain */
	host_free(host);
}

/* The second stop does not wait for the drain. */
static void stop_twice(void *context, const char *failed)
{
	host_stop(*(struct host **)context);
	host_stop(*(struct host **)context);
}

TEST(a_second_stop_skips_the_drain)
{
	struct probe a = {.never_drained = true}, w = {0};
	struct host *host;
	struct plan *plan = test_plan();
	uint32_t na = test_node(plan, "a", &test_producer, &a);
	uint32_t nw = test_node(plan, "w", &test_writer, &w);
	int64_t before = clock_mono();

	test_batches(plan, na, nw);
	host = test_host((struct host_options){
		.drain_ns = 60 * NS_PER_SEC, .live = stop_twice, .context = &host});
	expect_eq(host_load(host, plan, NULL), 0);
	test_run(host, 0);
	expect(clock_mono() - before < 30 * NS_PER_SEC);
	expect_eq(a.n_destroy, 1);
	host_free(host);
}

/* A call that never returns does not keep the process from ending. If it returns after all, what
 * it still asks of the host does no harm. */
static void count_work(void *arg)
{
	sem_post(arg);
}

static void ask_for_work(struct probe *p)
{
	p->host->work(p->instance, count_work, NULL, p->user);
}

_Noreturn TEST(who_hangs_is_left_behind)
{
	static struct blocked blocked; /* outlives the test: its thread stays */
	static sem_t worked;
	static struct probe slow = {
		.block_start = &blocked.go, .on_start = ask_for_work, .user = &worked};
	struct plan *plan = test_plan();

#ifdef __SANITIZE_THREAD__
	test_skip("a thread is left behind on purpose, which TSan reports; run without it");
#endif
	sem_init(&blocked.go, 0, 0);
	sem_init(&worked, 0, 0);
	test_node(plan, "slow", &test_writer, &slow);
	blocked.host = test_host((struct host_options){.drain_ns = NS_PER_MSEC});
	expect_eq(host_load(blocked.host, plan, NULL), 0);
	host_stop(blocked.host);
	host_stop(blocked.host);
	host_stop(blocked.host);
	test_run(blocked.host, 0);
	expect_eq(slow.n_stop, 0);
	host_free(blocked.host);
	sem_post(&blocked.go);
	sem_wait(&worked);
	_exit(0); /* its descriptors and memory stay, on purpose */
}

/* A batch that lies about its samples, or that is none, is refused and counted. */
static void send_bad(struct probe *p)
{
	struct andiron_batch bad = *test_batch(10, 0);

	p->host->ledger_add(p->instance, ANDIRON_LEDGER_TAKEN, NULL, 10);
	bad.samples = 11;
	expect_eq(p->host->send_batch(p->instance, &bad), -EINVAL);
	bad.samples = 10;
	bad.size = 8;
	expect_eq(p->host->send_batch(p->instance, &bad), -EINVAL);
	expect_eq(p->host->send_batch(p->instance, NULL), -EINVAL);
	expect_eq(p->host->send_batch(p->instance + 1000, &bad), -EINVAL);
	expect_eq(p->host->send_batch(0, &bad), -EINVAL);
	p->host->ledger_add(p->instance, ANDIRON_LEDGER_TAKEN, NULL, 1);
	bad.release(bad.owner);
}

/* Nor may one batch hold so much that sums of batches overflow. */
static void send_huge(struct probe *p)
{
	const struct andiron_batch *most = test_batch(ANDIRON_BATCH_MAX_SAMPLES, 0);
	const struct andiron_batch *huge = test_batch(ANDIRON_BATCH_MAX_SAMPLES + 1, 0);

	p->host->ledger_add(p->instance, ANDIRON_LEDGER_TAKEN, NULL, huge->samples);
	expect_eq(p->host->send_batch(p->instance, huge), -EINVAL);
	p->host->ledger_add(p->instance, ANDIRON_LEDGER_TAKEN, NULL, most->samples);
	expect_eq(p->host->send_batch(p->instance, most), 0);
	batch_release(huge);
	batch_release(most);
}

TEST(a_batch_has_so_many_samples_at_most)
{
	struct probe a = {.on_start = send_huge}, w = {0};
	struct host *host = run_pair(&a, &w);

	expect_eq(w.samples, ANDIRON_BATCH_MAX_SAMPLES);
	expect_eq(test_dropped(host, "w", "a:invalid"), ANDIRON_BATCH_MAX_SAMPLES + 1);
	host_free(host);
}

TEST(a_lying_batch_is_refused)
{
	struct probe a = {.on_start = send_bad}, w = {0};
	struct host *host = run_pair(&a, &w);

	expect_eq(w.n_batch, 0);
	expect_eq(test_dropped(host, "w", "a:invalid"), 11);
	host_free(host);
}

/* A service is made and started before those that need it, outlives them, and a plan without it is
 * refused by the extension's name. */
static void look_for_service(struct probe *p)
{
	struct andiron_extension found = {0};

	expect_eq(p->host->extension(p->instance, "nobody.offers/1", &found), -ENOENT);
	expect_eq(p->host->extension(p->instance, TEST_SERVICE_ID, &found), 0);
	expect_eq(*(const int *)found.table, 42);
	expect(found.self == p->user);
}

TEST(services_come_first_and_go_last)
{
	struct probe u = {.on_start = look_for_service}, s = {0};
	struct host *host;
	struct plan *plan = test_plan();

	u.user = &s;
	test_node(plan, "u", &test_user, &u);
	test_node(plan, "s", &test_service, &s);
	host = run_until_live(plan, 0);
	test_before("+s", "+u");
	test_before("-u", "-s");
	host_free(host);
}

TEST(a_missing_extension_is_named)
{
	struct probe u = {0};
	struct plan *plan = test_plan();
	struct host *host = test_host((struct host_options){0});
	struct error err = ERROR_NULL;

	test_node(plan, "u", &test_user, &u);
	expect_eq(host_load(host, plan, &err), -ENOENT);
	expect(strstr(err.text, TEST_SERVICE_ID));
	expect_eq(u.n_create, 0);
	host_free(host);
}

/* A failing create takes the whole load back, with the component's words. */
TEST(a_failed_create_leaves_nothing)
{
	struct probe a = {0}, b = {.fail_create = -ENXIO};
	struct plan *plan = test_plan();
	struct host *host = test_host((struct host_options){0});
	struct error err = ERROR_NULL;

	test_node(plan, "a", &test_producer, &a);
	test_node(plan, "b", &test_writer, &b);
	expect_eq(host_load(host, plan, &err), -ENXIO);
	expect_str(str_of(err.text), "b: no such thing");
	expect_eq(a.n_destroy, a.n_create);
	expect_eq(b.n_destroy, 0);
	expect_eq(host->instances.n, 0);
	host_free(host);
}

struct settling {
	struct host *host;
	sem_t go;
	bool settled;
};

static void wait_to_settle(void *context)
{
	struct settling *s = context;

	sem_wait(&s->go);
}

static void has_settled(void *context)
{
	struct settling *s = context;

	s->settled = true;
}

static void begin_to_settle(struct probe *p)
{
	expect_eq(p->host->work(p->instance, wait_to_settle, has_settled, p->user), 0);
}

static void let_settle(void *context)
{
	struct settling *s = context;

	sem_post(&s->go);
}

static void live_when_settled(void *context, const char *failed)
{
	struct settling *s = context;

	expect(s->settled && !failed);
	host_stop(s->host);
}

/* Who waits for everything to run may rely on what was begun at the start: a command is let go when
 * the sampler has selected it. */
TEST(live_is_when_the_work_of_the_start_is_done)
{
	struct settling s = {0};
	struct probe a = {.on_start = begin_to_settle, .user = &s}, w = {0};
	struct plan *plan = test_plan();
	uint32_t na = test_node(plan, "a", &test_producer, &a);
	uint32_t nw = test_node(plan, "w", &test_writer, &w);

	sem_init(&s.go, 0, 0);
	test_batches(plan, na, nw);
	s.host = test_host((struct host_options){.live = live_when_settled, .context = &s});
	expect_eq(host_load(s.host, plan, NULL), 0);
	/* Long after both have started. */
	expect_eq(host_timer(s.host, 20 * NS_PER_MSEC, 0, let_settle, &s), 0);
	test_run(s.host, 0);
	expect(s.settled);
	host_free(s.host);
}

/* Load and free without a run destroys what was made, and starts nothing. */
TEST(loading_alone_starts_nothing)
{
	for (int i = 0; i < 1000; i++) {
		struct probe a = {0}, w = {0};
		struct plan *plan = test_plan();
		struct host *host = test_host((struct host_options){0});
		uint32_t na = test_node(plan, "a", &test_producer, &a);
		uint32_t nw = test_node(plan, "w", &test_writer, &w);

		test_batches(plan, na, nw);
		test_targets(plan, na, nw);
		test_literal(plan, nw, "k", "v");
		expect_eq(host_load(host, plan, NULL), 0);
		host_free(host);
		expect_eq(a.n_start + w.n_start + w.n_targets, 0);
		expect_eq(a.n_destroy + w.n_destroy, 2);
	}
}

/* The same with running in between: descriptors and memory stay flat (the runner and ASan look). */
TEST(a_hundred_runs_leak_nothing)
{
	for (int i = 0; i < 100; i++) {
		struct probe a = {.on_start = take_three}, w = {0};
		struct plan *plan = test_plan();
		struct host *host;
		uint32_t na = test_node(plan, "a", &test_producer, &a);
		uint32_t nw = test_node(plan, "w", &test_writer, &w);

		test_batches(plan, na, nw);
		host = test_host((struct host_options){.live = test_stop_live, .context = &host});
		expect_eq(host_load(host, plan, NULL), 0);
		test_run(host, 0);
		expect_eq(w.samples, 300);
		host_free(host);
	}
}

/* Any allocation may fail while a host is made and a plan loaded. */
static int make_and_load(void *context)
{
	struct host_options options = {.log_fd = 2};
	struct probe *probes = context;
	struct plan *plan;
	struct host *host;
	struct error err = ERROR_NULL;
	int r = host_new(&options, &host, &err);

	if (r < 0)
		return r;
	plan = test_try_plan(probes);
	r = plan ? host_load(host, plan, &err) : -ENOMEM;
	host_free(host);
	probe_fini(&probes[0]);
	probe_fini(&probes[1]);
	return r;
}

TEST(loading_survives_out_of_memory)
{
	struct probe probes[2] = {0};

	test_each_failing_allocation(make_and_load, probes);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Offers: batches for all consumers or for none, and what their producer hears. */
#include "host/tests/test-support.h"

#include <errno.h>

/* What is offered goes to all consumers or to none, the producer hears when they are done with it,
 * and what was refused is in no book. */
struct offered {
	struct host *host;
	struct probe *producer, *slow, *other;
	sem_t go;
	bool done;
	int accepted, taken, dropped;
};

static void on_offered(void *arg, int32_t result)
{
	struct offered *o = ((struct probe *)arg)->user;

	expect(result == 0 || result == -ECANCELED);
	o->taken += result == 0;
	o->dropped += result != 0;
}

static void offer_some(struct probe *p)
{
	struct offered *o = p->user;
	const struct andiron_batch *large = test_batch(1, 20000);
	const struct andiron_batch *huge = test_batch(ANDIRON_BATCH_MAX_SAMPLES + 1, 0);

	for (int i = 0; i < 10; i++) {
		const struct andiron_batch *batch = test_batch(1, 4000);
		int rc = p->host->offer_batch(p->instance, batch, on_offered, p);

		expect(rc == 0 || rc == -EAGAIN);
		o->accepted += rc == 0;
		batch_release(batch);
	}
	expect_eq(p->host->offer_batch(p->instance, large, on_offered, p), -E2BIG);
	expect_eq(p->host->offer_batch(p->instance, large, NULL, p), -EINVAL);
	expect_eq(p->host->offer_batch(p->instance, huge, on_offered, p), -EINVAL);
	p->host->full(o->other->instance, 1);
	expect_eq(p->host->offer_batch(p->instance, large, on_offered, p), -EAGAIN);
	p->host->full(o->other->instance, 0);
	batch_release(large);
	batch_release(huge);
}

static void stop_when_taken(void *context)
{
	struct offered *o = context;

	if (o->producer->n_start == 0)
		return;
	if (!o->done)
		for (int i = 0; i < o->accepted; i++)
			sem_post(&o->go);
	o->done = true;
	if (o->taken == o->accepted)
		host_stop(o->host);
}

TEST(an_offer_is_taken_by_all_or_by_none)
{
	struct offered o = {0};
	struct probe a = {.on_start = offer_some, .user = &o}, c = {0};
	struct probe slow = {.block_batch = &o.go};
	struct plan *plan = test_plan();
	uint32_t na = test_node(plan, "a", &test_producer, &a);
	uint32_t nb = test_node(plan, "slow", &test_writer, &slow);
	uint32_t nc = test_node(plan, "c", &test_writer, &c);

	test_batches(plan, na, nc);
	test_batches(plan, na, nb);
	sem_init(&o.go, 0, 0);
	o.producer = &a;
	o.other = &c;
	o.host = test_host((struct host_options){.queue_bytes = 10000, .workers = 3});
	expect_eq(host_load(o.host, plan, NULL), 0);
	expect_eq(host_timer(o.host, NS_PER_MSEC, NS_PER_MSEC, stop_when_taken, &o), 0);
	test_run(o.host, 0);
	/* Two fit, and one may have been taken out. */
	expect(o.accepted == 2 || o.accepted == 3);
	expect_eq(o.taken, o.accepted);
	expect_eq(c.samples, o.accepted);
	expect_eq(slow.samples, o.accepted);
	expect_eq(test_writer_row(o.host, "c")->delivered, o.accepted);
	host_free(o.host);
}

/* Whoever has offered hears that a consumer never got it. */
static void offer_two(struct probe *p)
{
	for (int i = 0; i < 2; i++) {
		const struct andiron_batch *batch = test_batch(1, 0);

		expect_eq(p->host->offer_batch(p->instance, batch, on_offered, p), 0);
		batch_release(batch);
	}
}

static void release_at_deadline(void *context)
{
	struct offered *o = context;
	struct instance *slow = host_instance_of(o->slow);

	/* Once its queue was dropped. */
	if (slow && o->host->n_stops_seen > 0 && queue_bytes(slow) == 0)
		for (int i = 0; i < 10; i++)
			sem_post(&o->go);
}

TEST(a_dropped_offer_is_told)
{
	struct offered o = {0};
	struct probe a = {.on_start = offer_two, .never_drained = true, .user = &o}, c = {0};
	struct probe slow = {.block_batch = &o.go};
	struct plan *plan = test_plan();
	uint32_t na = test_node(plan, "a", &test_producer, &a);
	uint32_t nb = test_node(plan, "slow", &test_writer, &slow);
	uint32_t nc = test_node(plan, "c", &test_writer, &c);

	test_batches(plan, na, nb);
	test_batches(plan, na, nc);
	sem_init(&o.go, 0, 0);
	o.slow = &slow;
	o.host = test_host((struct host_options){.drain_ns = NS_PER_SEC,
						 .workers = 3,
						 .live = test_stop_live,
						 .context = &o.host});
	expect_eq(host_load(o.host, plan, NULL), 0);
	expect_eq(host_timer(o.host, NS_PER_MSEC, NS_PER_MSEC, release_at_deadline, &o), 0);
	test_run(o.host, 0);
	expect_eq(test_dropped(o.host, "slow", "slow:deadline"), 1);
	expect_eq(c.samples, 2);
	expect_eq(o.dropped, 1); /* the other one was in hand when its producer went */
	host_free(o.host);
}

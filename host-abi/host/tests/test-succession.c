/* SPDX-License-Identifier: Apache-2.0 */
/* Components that are made anew while the graph runs, as when their file was replaced: the tables
 * of the plan's second version are copies, at other addresses. */
#include "host/graph/succession.h"
#include "host/tests/test-support.h"

#include <errno.h>

/* A discovery, a sampler that uses a service, what is behind it, a writer. */
struct graph {
	struct host *host;
	void (*then)(struct graph *g);
	struct probe service, discovery, sampler, forward, writer;
};

struct two {
	struct graph old, new;
	sem_t go;
	atomic_int early;
};

static struct andiron_component tables[2][5];

static void make_tables(void)
{
	for (int i = 0; i < 2; i++) {
		struct andiron_component *t = tables[i];

		t[0] = test_service;
		t[1] = test_producer;
		t[2] = test_user;
		t[2].flags = ANDIRON_COMPONENT_RAW_FRAMES;
		t[2].targets = test_writer.targets;
		t[3] = test_forward;
		t[4] = test_writer;
	}
}

/* `new`: which of them are replaced, a bit each in the order of `struct graph`. `probes`: which
 * have other arguments, so that a second instance is not taken for the first. */
static struct plan *plan_with(struct two *two, unsigned int new, unsigned int probes)
{
	static const char *const names[] = {"s", "d", "e", "f", "w"};
	struct plan *plan = test_plan();
	uint32_t n[5];

	for (unsigned int i = 0; i < 5; i++) {
		bool is_new = new >> i & 1;
		struct graph *g = probes >> i & 1 ? &two->new : &two->old;
		struct probe *const all[] = {&g->service, &g->discovery, &g->sampler, &g->forward,
					     &g->writer};

		n[i] = test_node(plan, names[i], &tables[is_new][i], all[i]);
	}
	test_targets(plan, n[1], n[2]);
	test_batches(plan, n[2], n[3]);
	test_batches(plan, n[3], n[4]);
	return plan;
}

static struct plan *plan_of(struct two *two, unsigned int new)
{
	return plan_with(two, new, new);
}

static void on_live(void *context, const char *failed)
{
	struct two *two = context;

	two->old.then(&two->old);
	host_stop(two->old.host);
}

static void run(struct two *two, void (*then)(struct graph *g))
{
	make_tables();
	two->old.then = then;
	two->old.host = test_host((struct host_options){.live = on_live, .context = two});
	expect_eq(host_load(two->old.host, plan_of(two, 0), NULL), 0);
	test_run(two->old.host, 0);
	host_free(two->old.host);
}

static struct two *both(struct graph *g)
{
	return (struct two *)(void *)g;
}

static void starts_alone(struct probe *p)
{
	struct two *two = p->user;

	two->early += two->old.writer.n_destroy == 0;
}

static void replace_writer(struct graph *g)
{
	struct two *two = both(g);
	struct error err = ERROR_NULL;

	two->new.writer.on_start = starts_alone;
	two->new.writer.user = two;
	test_take(&g->sampler, 7, 0);
	expect_eq(host_reload(g->host, plan_of(two, 1u << 4), &err), 0);
	test_take(&g->sampler, 5, 0);
	test_until(g->host, &two->new.writer.n_batch, 1);
}

/* A writer's successor starts when the writer has given up what it owns. What is sent meanwhile is
 * the successor's, and nothing is lost (test_run looks at the books). */
TEST(a_successor_starts_when_the_other_is_gone)
{
	struct two two = {0};

	run(&two, replace_writer);
	expect_eq(two.early, 0);
	expect_eq(two.old.writer.n_destroy + two.new.writer.n_destroy, 2);
	expect_eq(two.old.writer.samples + two.new.writer.samples, 12);
	expect_eq(two.old.forward.n_create + two.old.sampler.n_create, 2);
	expect_eq(two.new.forward.n_create + two.new.sampler.n_create, 0);
}

static void samples_still(struct probe *p)
{
	struct two *two = p->user;

	two->early += two->old.sampler.n_drain;
	sem_wait(&two->go);
}

static void post(void *context)
{
	sem_post(context);
}

static void replace_sampler(struct graph *g)
{
	struct two *two = both(g);
	struct error err = ERROR_NULL;

	two->new.sampler.on_start = samples_still;
	two->new.sampler.user = two;
	g->sampler.send_at_drain = 1;
	expect_eq(host_reload(g->host, plan_of(two, 1u << 2), &err), 0);
	/* What it samples meanwhile goes where it always went. */
	test_take(&g->sampler, 3, 0);
	test_until(g->host, &g->writer.n_batch, 1);
	expect_eq(host_timer(g->host, NS_PER_MSEC, 0, post, &two->go), 0);
	test_until(g->host, &two->new.sampler.n_start, 1);
	test_until(g->host, &g->sampler.n_destroy, 1);
	test_take(&two->new.sampler, 4, 0);
}

/* A sampler goes on until its successor works, and what it sends at its end arrives. */
TEST(samplers_overlap)
{
	struct two two = {0};

	sem_init(&two.go, 0, 0);
	run(&two, replace_sampler);
	expect_eq(two.early, 0);
	expect_eq(two.old.writer.samples, 3 + 10 + 4);
	expect_eq(two.old.sampler.n_destroy + two.new.sampler.n_destroy, 2);
}

static void replace_all(struct graph *g)
{
	struct two *two = both(g);
	struct error err = ERROR_NULL;

	g->sampler.send_at_drain = 1;
	test_take(&g->sampler, 3, 0);
	two->new.discovery.on_start = samples_still;
	two->new.discovery.user = two;
	expect_eq(host_reload(g->host, plan_of(two, 31), &err), 0);
	test_until(g->host, &two->new.sampler.n_start, 1);
	/* Its targets are not there yet. */
	for (int i = 0; i < 20; i++) {
		host_timer(g->host, 0, 0, post, &(sem_t){0});
		host_step(g->host);
	}
	expect_eq(g->sampler.n_drain, 0);
	sem_post(&two->go);
	test_until(g->host, &g->service.n_destroy, 1);
	test_take(&two->new.sampler, 4, 0);
}

/* All at once: nobody waits for one that waits for it, and a sampler goes on until whoever gives
 * its successor targets has begun. */
TEST(a_whole_graph_is_replaced)
{
	struct two two = {0};

	sem_init(&two.go, 0, 0);
	run(&two, replace_all);
	expect_eq(two.early, 0);
	expect_eq(two.old.writer.samples + two.new.writer.samples, 3 + 10 + 4);
	expect_eq(two.old.service.n_destroy + two.new.service.n_destroy, 2);
}

static void replace_service(struct graph *g)
{
	struct two *two = both(g);
	struct error err = ERROR_NULL;

	expect_eq(host_reload(g->host, plan_with(two, 1u, 1u | 1u << 2), &err), 0);
	test_until(g->host, &g->service.n_destroy, 1);
	expect_eq(g->sampler.n_create, 1);
	expect_eq(g->sampler.n_update, 0);
	expect_eq(two->new.sampler.n_create, 1);
}

/* Whoever has tables of a service that is replaced is made anew, or it would keep the old one. */
TEST(users_of_a_replaced_service_are_made_anew)
{
	struct two two = {0};

	run(&two, replace_service);
	expect_eq(two.new.service.n_destroy, 1);
	expect_eq(two.old.forward.n_create, 1);
}

static void fail_to_replace(struct graph *g)
{
	struct two *two = both(g);
	struct error err = ERROR_NULL;

	two->new.writer.fail_create = -EINVAL;
	expect_eq(host_reload(g->host, plan_of(two, 31), &err), -EINVAL);
	expect_eq(two->new.sampler.n_create - two->new.sampler.n_destroy, 0);
	expect(!host_instance_of(&two->new.sampler));
	test_take(&g->sampler, 3, 0);
}

/* One that cannot be made leaves all as it was. */
TEST(a_failure_replaces_nobody)
{
	struct two two = {0};

	run(&two, fail_to_replace);
	expect_eq(two.old.writer.samples, 3);
	expect_eq(two.old.writer.n_create + two.old.sampler.n_create, 2);
}

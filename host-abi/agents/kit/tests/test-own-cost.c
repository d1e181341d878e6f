/* SPDX-License-Identifier: Apache-2.0 */
/* CPU time of threads by their names. */
#include "agents/kit/own-cost.h"
#include "base/clock.h"
#include "testing/test.h"

#include <pthread.h>

static void work(int64_t cpu_ns)
{
	volatile double sum = 0;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < cpu_ns)
		for (int i = 1; i < 10000; i++)
			sum += 1.0 / i;
	expect(sum >= 0);
}

static void *ours(void *barrier)
{
	work(60 * NS_PER_MSEC);
	pthread_barrier_wait(barrier);
	pthread_barrier_wait(barrier);
	return NULL;
}

static void look(struct own_cost *c)
{
	expect_eq(own_cost_look(c), 0);
}

/* A thread counts by its name, once, and what it used stays counted after its end; what others use
 * does not count. */
TEST(threads_count_by_name)
{
	struct own_cost cost = {0};
	pthread_barrier_t barrier;
	pthread_t thread;
	uint64_t then;

	pthread_barrier_init(&barrier, NULL, 2);
	work(60 * NS_PER_MSEC);
	look(&cost);
	expect_eq(own_cost_threads_ms(&cost), 0);
	expect_eq(pthread_create(&thread, NULL, ours, &barrier), 0);
	expect_eq(pthread_setname_np(thread, "andiron-worker"), 0);
	pthread_barrier_wait(&barrier);
	look(&cost);
	then = own_cost_threads_ms(&cost);
	expect(then >= 40);
	look(&cost);
	expect(own_cost_threads_ms(&cost) < then + 40);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	then = own_cost_threads_ms(&cost);
	look(&cost);
	expect_eq(own_cost_threads_ms(&cost), then);
	expect_eq(own_cost_children_ms(&cost), 0);
	own_cost_free(&cost);
	pthread_barrier_destroy(&barrier);
}

static int look_once(void *context)
{
	struct own_cost cost = {0};
	int r = own_cost_look(&cost);

	own_cost_free(&cost);
	return r;
}

TEST(memory_runs_out)
{
	test_each_failing_allocation(look_once, NULL);
}

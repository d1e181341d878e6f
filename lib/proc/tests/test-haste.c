/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of haste.h. */
#include "proc/haste.h"
#include "testing/test.h"

#include <pthread.h>
#include <sys/resource.h>

struct hasty {
	pthread_barrier_t met;
	bool began, ended; /* whether the thread had it, before and behind haste_end */
};

static void *be_hasty(void *arg)
{
	struct hasty *h = arg;

	h->began = haste_has();
	pthread_barrier_wait(&h->met);
	pthread_barrier_wait(&h->met);
	h->ended = haste_has();
	return NULL;
}

/* Threads that are made in haste share it, and none keeps it: one that did would go before the
 * node's programs for as long as the agent runs. */
TEST(haste_ends_for_all_threads)
{
	struct hasty h = {0};
	pthread_t thread;

	if (!haste_begin())
		test_skip("needs CAP_SYS_NICE, and to be as important as others");
	expect(haste_has() && !haste_begin());
	pthread_barrier_init(&h.met, NULL, 2);
	expect_eq(pthread_create(&thread, NULL, be_hasty, &h), 0);
	pthread_barrier_wait(&h.met);
	haste_end();
	expect(!haste_has());
	pthread_barrier_wait(&h.met);
	pthread_join(thread, NULL);
	expect(h.began && !h.ended);
	pthread_barrier_destroy(&h.met);
}

static void *be_patient(void *arg)
{
	bool *begun = arg;

	setpriority(PRIO_PROCESS, 0, 5);
	*begun = haste_begin();
	return NULL;
}

/* Who is started with `nice` is not to go before others. */
TEST(haste_is_not_for_who_was_made_less_important)
{
	bool begun = true;
	pthread_t thread;

	expect_eq(pthread_create(&thread, NULL, be_patient, &begun), 0);
	pthread_join(thread, NULL);
	expect(!begun && !haste_has());
}

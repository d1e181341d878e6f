/* SPDX-License-Identifier: Apache-2.0 */
/* Haste, by the nice values that threads have. Holds with and without the right to it. */
#include "proc/haste.h"

#include "testing/test.h"

#include <pthread.h>
#include <sys/resource.h>

static int nice_here(void)
{
	return getpriority(PRIO_PROCESS, 0);
}

static void *look(void *ret)
{
	*(int *)ret = nice_here();
	return NULL;
}

/* Where the kernel allows it, only the thread that asked is before the others, and not for longer
 * than it said; a thread of before keeps its place. */
TEST(haste_is_of_one_thread_and_ends)
{
	static const int gains[] = {HASTE_GAIN, HASTE_GAIN_START};
	int before = nice_here();

	for (size_t i = 0; i < 2; i++) {
		int wanted = before - gains[i] < -20 ? -20 : before - gains[i], here;

		expect_eq(haste_begin(gains[i]), before);
		here = nice_here();
		expect(here == before || here == wanted);
		haste_end(before);
		expect_eq(nice_here(), before);
	}
}

/* A thread that is made afterwards inherits none of it. */
TEST(haste_is_not_inherited_behind_its_end)
{
	int before = nice_here(), there = before + 1;
	pthread_t thread;

	haste_end(haste_begin(HASTE_GAIN_START));
	expect(pthread_create(&thread, NULL, look, &there) == 0);
	pthread_join(thread, NULL);
	expect_eq(there, before);
}

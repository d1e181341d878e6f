/* SPDX-License-Identifier: Apache-2.0 */
/* Threads, some long, some that live for a millisecond; their stacks begin at clone. */
#include "burn.h"

#include <pthread.h>

static NOINLINE void work(int depth, unsigned long rounds)
{
	if (depth > 0)
		work(depth - 1, rounds);
	else
		burn(rounds);
	NO_TAIL;
}

static void *long_thread(void *argument)
{
	while (burning())
		work(8, 100000);
	return argument;
}

static void *short_thread(void *argument)
{
	work(4, 400000);
	return argument;
}

int main(int argc, char **argv)
{
	pthread_t threads[2], brief;

	burn_init(argc, argv);
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, long_thread, NULL) != 0)
			return 1;
	while (burning())
		if (pthread_create(&brief, NULL, short_thread, NULL) == 0)
			pthread_join(brief, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

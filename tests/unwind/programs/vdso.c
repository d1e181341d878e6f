/* SPDX-License-Identifier: Apache-2.0 */
/* Most time is spent in code of the vDSO. */
#include "burn.h"

#include <sys/time.h>

static NOINLINE void ask(void)
{
	struct timespec t;
	struct timeval v;

	for (int i = 0; i < 20000; i++) {
		clock_gettime(CLOCK_MONOTONIC, &t);
		clock_gettime(CLOCK_REALTIME_COARSE, &t);
		gettimeofday(&v, NULL);
		burn_result += (unsigned long)t.tv_nsec + (unsigned long)v.tv_usec +
			       (unsigned long)time(NULL);
	}
}

int main(int argc, char **argv)
{
	burn_init(argc, argv);
	while (burning())
		ask();
	return 0;
}

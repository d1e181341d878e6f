/* SPDX-License-Identifier: Apache-2.0 */
/* Works, and changes its name to "t-N" every few milliseconds: N ms of CLOCK_MONOTONIC. So a
 * sample's name says when it was taken. */
#include "burn.h"

#include <stdio.h>
#include <sys/prctl.h>

static NOINLINE void work(int depth)
{
	if (depth > 0)
		work(depth - 1);
	else
		burn(1000000);
	NO_TAIL;
}

int main(int argc, char **argv)
{
	struct timespec t;
	char name[16];

	burn_init(argc, argv);
	while (burning()) {
		clock_gettime(CLOCK_MONOTONIC, &t);
		snprintf(name, sizeof(name), "t-%lu",
			 (unsigned long)t.tv_sec * 1000 + (unsigned long)t.tv_nsec / 1000000);
		prctl(PR_SET_NAME, name);
		work(6);
	}
	return 0;
}

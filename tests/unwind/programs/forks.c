/* SPDX-License-Identifier: Apache-2.0 */
/* Children that work right after fork, before they have pages of their own, and parents that work
 * while they run. Each child lives for a few milliseconds. */
#include "burn.h"

#include <sys/wait.h>
#include <unistd.h>

static NOINLINE void child(int depth)
{
	if (depth > 0)
		child(depth - 1);
	else
		burn(2000000);
	NO_TAIL;
}

int main(int argc, char **argv)
{
	burn_init(argc, argv);
	while (burn_used() + burn_children() < burn_seconds) {
		pid_t pid = fork();

		if (pid == 0) {
			child(5);
			_exit(0);
		}
		if (pid < 0)
			return 1;
		burn(100000);
		waitpid(pid, NULL, 0);
	}
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Children that work on their parent's stack, as vfork lets them, and then exit. */
#include "burn.h"

#include <sys/wait.h>
#include <unistd.h>

static NOINLINE void spawn(int depth)
{
	pid_t pid;

	if (depth > 0) {
		spawn(depth - 1);
		NO_TAIL;
		return;
	}
	pid = vfork();
	if (pid == 0) {
		burn(2000000);
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
	burn(200000);
}

int main(int argc, char **argv)
{
	burn_init(argc, argv);
	while (burn_used() + burn_children() < burn_seconds)
		spawn(5);
	return 0;
}

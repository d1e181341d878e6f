/* SPDX-License-Identifier: Apache-2.0 */
/* repeat SECONDS COMMAND…: runs the command, again and again until all of its runs together have
 * used so many CPU seconds. Exit code: that of the last one, the first that failed. */
#include "burn.h"

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static int once(char **command)
{
	int status;
	pid_t pid = vfork();

	if (pid == 0) {
		execvp(command[0], command);
		_exit(127);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid < 0)
		return 127;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	int code;

	if (argc < 3) {
		fprintf(stderr, "usage: repeat SECONDS COMMAND…\n");
		return 2;
	}
	burn_init(argc, argv);
	do
		code = once(argv + 2);
	while (code == 0 && burn_children() < burn_seconds);
	return code;
}

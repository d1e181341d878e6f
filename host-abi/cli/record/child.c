/* SPDX-License-Identifier: Apache-2.0 */
/* See child.h. The child waits on a pipe and not for SIGCONT: a stop shows in its parent's job
 * control, and a pipe closes by itself when the recorder dies, so no stopped process is ever left
 * behind. */
#include "cli/record/child.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int child_code_of(int error)
{
	return error == ENOENT || error == ENOTDIR ? 127 : 126;
}

/* 0, or why exec would fail. */
static int try_path(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errno;
	if (!S_ISREG(st.st_mode))
		return EACCES;
	return access(path, X_OK) == 0 ? 0 : errno;
}

/* Looks where execvp will look, so that a slip of the finger does not cost a recording. */
static int find_command(const char *name)
{
	struct str rest = str_of(getenv("PATH"));
	int error = ENOENT;

	if (strchr(name, '/'))
		return try_path(name);
	while (rest.n > 0) {
		struct str dir = str_cut(&rest, ':');
		char path[PATH_MAX];
		int tried;

		snprintf(path, sizeof(path), "%.*s/%s", STR_FMT(dir.n ? dir : STR(".")), name);
		tried = *name ? try_path(path) : ENOENT;
		if (tried == 0)
			return 0;
		if (tried == EACCES)
			error = EACCES;
	}
	return error;
}

/* In the child: wait, become the caller, exec. Reports through error_fd. */
static void __attribute__((noreturn))
run_child(char **argv, bool to_stderr, const struct caller *caller, int go_fd, int error_fd)
{
	char byte;
	ssize_t n;
	int error;

	do
		n = read(go_fd, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1) /* the recorder is gone, or could not start */
		_exit(EXIT_CANNOT);
	error = -caller_become(caller);
	if (to_stderr && error == 0 && dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		error = errno;
	if (error == 0) {
		execvp(argv[0], argv);
		error = errno;
	}
	n = write(error_fd, &error, sizeof(error));
	_exit(n == sizeof(error) ? child_code_of(error) : EXIT_CANNOT);
}

/* 0, or a negative errno with what was opened still in *child. */
static int fork_held(struct child *child, char **argv, bool to_stderr, const struct caller *caller)
{
	int go[2], error[2], r = 0;

	if (pipe2(go, O_CLOEXEC) < 0)
		return -errno;
	child->go_fd = go[1];
	if (pipe2(error, O_CLOEXEC) < 0) {
		r = -errno;
		close(go[0]);
		return r;
	}
	child->error_fd = error[0];
	child->pid = fork();
	if (child->pid == 0) {
		close(go[1]);
		run_child(argv, to_stderr, caller, go[0], error[1]);
	}
	if (child->pid < 0) {
		r = -errno;
		child->pid = 0;
	}
	close(go[0]);
	close(error[1]);
	return r;
}

int child_start(struct child *child, char **argv, bool to_stderr, const struct caller *caller,
		struct error *err)
{
	int r = find_command(argv[0]);

	*child = CHILD_NULL;
	if (r != 0)
		return error_errno(err, -r, "cannot run %s", argv[0]);
	r = fork_held(child, argv, to_stderr, caller);
	if (r < 0) {
		child_fini(child);
		return error_errno(err, r, "cannot start %s", argv[0]);
	}
	return 0;
}

void child_let_go(struct child *child)
{
	ssize_t n;

	check(child->go_fd >= 0);
	n = write(child->go_fd, "", 1); /* EPIPE: it was killed, and waitpid will say so */
	(void)n;
	close(take_fd(child->go_fd));
}

int child_exec_error(struct child *child)
{
	int error = 0;

	check(child->go_fd < 0);
	if (child->error_fd < 0)
		return 0;
	if (read(child->error_fd, &error, sizeof(error)) != sizeof(error))
		error = 0; /* closed by exec */
	close(take_fd(child->error_fd));
	return error;
}

static bool reap(struct child *child, int options)
{
	int status;
	pid_t pid;

	if (child->pid <= 0)
		return true;
	do
		pid = waitpid(child->pid, &status, options);
	while (pid < 0 && errno == EINTR);
	if (pid == 0)
		return false;
	child->exit_code = pid < 0             ? EXIT_CANNOT
			   : WIFEXITED(status) ? WEXITSTATUS(status)
					       : 128 + WTERMSIG(status);
	child->pid = 0;
	return true;
}

bool child_reap(struct child *child)
{
	return reap(child, WNOHANG);
}

void child_fini(struct child *child)
{
	bool held = child->go_fd >= 0;

	closep(&child->go_fd);
	if (held)
		reap(child, 0);
	closep(&child->error_fd);
	*child = CHILD_NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin file, tried in a child. elf-check.c reads what a loader needs to start; it cannot tell
 * whether relocations, initializers or the tables behind the entry are whole, and dlopen follows
 * all of them. fork, and not exec: the child has the parent's address space, so a file that loads
 * in the child loads in the parent at the same addresses, with the same result. */
#include "base/check.h"
#include "base/cleanup.h"
#include "host/registry.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define PROBE_MS 10000 /* a plugin loads in some 5 ms */

_Static_assert(sizeof(struct error) <= PIPE_BUF, "the child must never block on its report");

/* No core file, no output, no handler of a sanitizer: only how it ends counts. */
static void isolate(void)
{
	static const int deadly[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP};
	const struct rlimit none = {0, 0}, seconds = {PROBE_MS / 1000, PROBE_MS / 1000};
	int null = open("/dev/null", O_RDWR);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_CORE, &none);
	setrlimit(RLIMIT_CPU, &seconds);
	for (size_t i = 0; i < sizeof(deadly) / sizeof(deadly[0]); i++)
		signal(deadly[i], SIG_DFL);
	for (int fd = 0; null >= 0 && fd <= 2; fd++)
		dup2(null, fd);
}

static _Noreturn void try_load(const char *path, int report)
{
	const struct andiron_plugin *plugin;
	struct error err = ERROR_NULL;
	void *library;

	isolate();
	err.code = registry_load(path, &plugin, &library, &err);
	if (err.code == 0)
		dlclose(library); /* the end of a process runs terminators: they are tried, too */
	if (write(report, &err, sizeof(err)) != sizeof(err))
		_exit(1);
	_exit(0);
}

/* Waits for the child, at most PROBE_MS; *ret_status as waitpid gives it. 0, -ETIMEDOUT (the child
 * was killed), or the errno of what failed. */
static int await(pid_t child, int *ret_status)
{
	_cleanup_(closep) int pidfd = (int)syscall(SYS_pidfd_open, child, 0);
	struct pollfd poll_fd = {.fd = pidfd, .events = POLLIN};
	int n = pidfd < 0 ? -1 : poll(&poll_fd, 1, PROBE_MS);
	int r = n > 0 ? 0 : n == 0 ? -ETIMEDOUT : -errno;

	if (r < 0)
		kill(child, SIGKILL);
	while (waitpid(child, ret_status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return r;
}

static int explain(int status, struct error *err)
{
	if (WIFSIGNALED(status))
		return error_set(err, -ENOEXEC,
				 "loading it crashed the process that tried it (signal %d, %s): it "
				 "is damaged, or its initializers fail; copy or build it again",
				 WTERMSIG(status), strsignal(WTERMSIG(status)));
	return error_set(err, -ENOEXEC,
			 "loading it ended the process that tried it (exit status %d, 127 is the "
			 "dynamic loader's): it is damaged; copy or build it again",
			 WEXITSTATUS(status));
}

int registry_probe(const char *path, struct error *err)
{
	_cleanup_(closep) int ours = -1;
	_cleanup_(closep) int theirs = -1;
	struct error found = ERROR_NULL;
	int fds[2], status = 0, r;
	pid_t child;

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return error_errno(err, -errno, "it cannot be tried: no pipe");
	ours = fds[0];
	theirs = fds[1];
	child = fork();
	if (child == 0)
		try_load(path, theirs);
	if (child < 0)
		return error_errno(err, -errno, "it cannot be tried: no child process");
	r = await(child, &status);
	if (r == -ETIMEDOUT)
		return error_set(err, -ENOEXEC,
				 "loading it did not end within %d s: it is damaged, or its "
				 "initializers hang; copy or build it again",
				 PROBE_MS / 1000);
	if (r < 0)
		return error_errno(err, r, "it cannot be tried: no report of the child process");
	if (read(ours, &found, sizeof(found)) != sizeof(found))
		return explain(status, err);
	found.text[sizeof(found.text) - 1] = '\0'; /* the plugin's code may have written it */
	if (found.code < 0)
		return error_set(err, found.code, "%s", found.text);
	return status == 0 ? 0 : explain(status, err);
}

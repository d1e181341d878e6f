/* SPDX-License-Identifier: Apache-2.0 */
/* Components in processes of their own: the host's worker program (host.h), as `andiron worker FILE
 * COMPONENT`, which puts itself into a sandbox and calls the component's function. It is named by
 * whoever makes the host, and never guessed: the program that this process runs may be somebody
 * else's agent, which would start itself again. Executed and not forked,
 * since of a process with threads only the one that forks goes on, with whatever locks the others
 * held. Contract in sandboxed-worker.h. */
#include "host/services/sandboxed-worker.h"

#include "base/cleanup.h"
#include "host/state.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>

DEFINE_CLEANUP(struct instance *, instance_unref);

static bool has_function(const struct andiron_component *c)
{
	return ANDIRON_HAS(c, andiron_component, subprocess);
}

static int spawn_worker(const char *worker, const char *file, const char *component, int socket,
			pid_t *ret)
{
	const char *const argv[] = {"andiron", "worker", file, component, NULL};
	char *const envp[] = {NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none;
	int r;

	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attr, &none);
	r = posix_spawn_file_actions_adddup2(&actions, socket, SANDBOXED_WORKER_SOCKET);
	if (r == 0)
		r = posix_spawn(ret, worker, &actions, &attr, (char *const *)(uintptr_t)argv, envp);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	return -r;
}

static int start_component(const char *worker, const struct andiron_component *component,
			   int32_t *ret_socket, int32_t *ret_pidfd)
{
	_cleanup_(closep) int ours = -1;
	_cleanup_(closep) int theirs = -1;
	int fds[2], pidfd, r;
	Dl_info where;
	pid_t pid;

	if (!worker || !has_function(component) || !dladdr(component, &where) || !where.dli_fname)
		return -ENOENT;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	ours = fds[0];
	/* A descriptor that is already the one it is to become would stay close-on-exec. */
	theirs = fcntl(fds[1], F_DUPFD_CLOEXEC, SANDBOXED_WORKER_SOCKET + 1);
	r = theirs < 0 ? -errno : 0;
	close(fds[1]);
	if (r == 0)
		r = spawn_worker(worker, where.dli_fname, component->name, theirs, &pid);
	if (r < 0)
		return r;
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0) {
		r = -errno;
		kill(pid, SIGKILL);
		return r;
	}
	*ret_socket = take_fd(ours);
	*ret_pidfd = pidfd;
	return 0;
}

static int32_t worker_start(void *self, uint64_t instance, int32_t *ret_socket, int32_t *ret_pidfd)
{
	_cleanup_(instance_unrefp) struct instance *i = instance_get(instance);

	if (!i || !ret_socket || !ret_pidfd)
		return -EINVAL;
	return start_component(i->host->options.worker, i->component, ret_socket, ret_pidfd);
}

const struct andiron_subprocess sandboxed_worker = {.size = sizeof(sandboxed_worker),
						    .start = worker_start};

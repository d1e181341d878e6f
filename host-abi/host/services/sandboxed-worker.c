/* SPDX-License-Identifier: Apache-2.0 */
/* Components in processes of their own: the host's worker program (host.h), as `andiron worker FILE
 * COMPONENT`, which puts itself into a sandbox and calls the component's function. It is named by
 * whoever makes the host, and never guessed: the program that this process runs may be somebody
 * else's agent, which would start itself again. Executed and not forked,
 * since of a process with threads only the one that forks goes on, with whatever locks the others
 * held. Contract in sandboxed-worker.h. */
#include "host/services/sandboxed-worker.h"

#include "base/cleanup.h"
#include "host/registry/generation.h"
#include "host/state.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

DEFINE_CLEANUP(struct instance *, instance_unref);

enum kind {
	PARSES,
	SENDS,
	ISOLATED, /* runs the whole component */
};

static bool has_function(const struct andiron_component *c, enum kind kind)
{
	if (kind == ISOLATED)
		return true;
	return kind == SENDS ? ANDIRON_HAS(c, andiron_component, sender)
			     : ANDIRON_HAS(c, andiron_component, subprocess);
}

/* What says how servers are reached and whom to trust; nothing else of the environment, which may
 * hold secrets, is anybody's. */
static const char *const for_sending[] = {
	"http_proxy", "https_proxy",  "HTTPS_PROXY",   "all_proxy",   "ALL_PROXY",   "no_proxy",
	"NO_PROXY",   "SSL_CERT_DIR", "SSL_CERT_FILE", "LOCALDOMAIN", "RES_OPTIONS", "OPENSSL_CONF",
};
#define N_FOR_SENDING (sizeof(for_sending) / sizeof(for_sending[0]))

static bool is_for_sending(const char *variable)
{
	for (size_t i = 0; i < N_FOR_SENDING; i++) {
		size_t n = strlen(for_sending[i]);

		if (strncmp(variable, for_sending[i], n) == 0 && variable[n] == '=')
			return true;
	}
	return false;
}

/* The variables that the process gets, in `ret`, which has room for them and NULL. */
static void choose_environment(enum kind kind, char *ret[N_FOR_SENDING + 1])
{
	size_t n = 0;

	for (char **v = environ; kind != PARSES && v && *v && n < N_FOR_SENDING; v++)
		if (is_for_sending(*v))
			ret[n++] = *v;
	ret[n] = NULL;
}

/* The signals that do not reach the process. One that sends delivers what there is to the end: what
 * stops the agent, and perhaps all of a terminal or a service, stops it by the agent alone. */
static void choose_signals(enum kind kind, sigset_t *ret)
{
	static const int stops[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

	sigemptyset(ret);
	for (size_t i = 0; kind != PARSES && i < sizeof(stops) / sizeof(stops[0]); i++)
		sigaddset(ret, stops[i]);
}

/* What a worker runs: a component of a file, by the file's path or by a descriptor that is given to
 * it; and as which kind of process. */
struct code {
	char path[PATH_MAX];
	int fd; /* -1: by its path */
	const char *component;
	enum kind kind;
};

/* The file that this instance is of. Another may be at its path by now: then it is given by the
 * descriptor, which is that of the loaded one. */
static int find_code(const struct instance *i, struct code *ret)
{
	const struct plugin_generation *g = i->generation;
	Dl_info where;
	struct stat st;
	int n;

	if (!g && (!dladdr(instance_original(i), &where) || !where.dli_fname))
		return -ENOENT;
	ret->fd = -1;
	if (g && (stat(g->path, &st) < 0 || !generation_is_file(g, &st))) {
		ret->fd = i->file;
		if (ret->fd < 0)
			return -ENOENT;
	}
	n = ret->fd < 0
		    ? snprintf(ret->path, sizeof(ret->path), "%s", g ? g->path : where.dli_fname)
		    : snprintf(ret->path, sizeof(ret->path), "/proc/self/fd/%d",
			       SANDBOXED_WORKER_SOCKET + 1);
	return n < (int)sizeof(ret->path) ? 0 : -ENAMETOOLONG;
}

/* What the process has open. One that sends has nothing of a terminal or a log, which are of
 * whoever started the agent: from a terminal it could read what is typed there. What there is to
 * say of it crosses the socket. */
static int choose_files(posix_spawn_file_actions_t *actions, const struct code *code, int socket)
{
	int r = posix_spawn_file_actions_adddup2(actions, socket, SANDBOXED_WORKER_SOCKET);

	if (r == 0 && code->fd >= 0)
		r = posix_spawn_file_actions_adddup2(actions, code->fd,
						     SANDBOXED_WORKER_SOCKET + 1);
	for (int fd = 0; r == 0 && code->kind != PARSES && fd <= STDERR_FILENO; fd++)
		r = posix_spawn_file_actions_addopen(actions, fd, "/dev/null",
						     fd ? O_WRONLY : O_RDONLY, 0);
	return r;
}

static int spawn_worker(const char *worker, const struct code *code, int socket, pid_t *ret)
{
	static const char *const words[] = {[SENDS] = "sender", [ISOLATED] = "isolated"};
	const char *const argv[] = {"andiron",       "worker",          code->path,
				    code->component, words[code->kind], NULL};
	char *envp[N_FOR_SENDING + 1];
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t mask;
	int r;

	choose_environment(code->kind, envp);
	choose_signals(code->kind, &mask);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attr);
	/* In a session of its own it has no terminal. */
	posix_spawnattr_setflags(&attr, (short)(POSIX_SPAWN_SETSIGMASK |
						(code->kind != PARSES ? POSIX_SPAWN_SETSID : 0)));
	posix_spawnattr_setsigmask(&attr, &mask);
	r = choose_files(&actions, code, socket);
	if (r == 0)
		r = posix_spawn(ret, worker, &actions, &attr, (char *const *)(uintptr_t)argv, envp);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	return -r;
}

static int start_component(const struct instance *i, enum kind kind, int32_t *ret_socket,
			   int32_t *ret_pidfd)
{
	const char *worker = i->host->options.worker;
	_cleanup_(closep) int ours = -1;
	_cleanup_(closep) int theirs = -1;
	int fds[2], pidfd, r;
	struct code code = {.component = i->component->name, .kind = kind};
	pid_t pid;

	if (!worker || !has_function(i->component, kind))
		return -ENOENT;
	r = find_code(i, &code);
	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	ours = fds[0];
	/* A descriptor that is already the one it is to become would stay close-on-exec. */
	theirs = fcntl(fds[1], F_DUPFD_CLOEXEC, SANDBOXED_WORKER_SOCKET + 2);
	r = theirs < 0 ? -errno : 0;
	close(fds[1]);
	if (r == 0)
		r = spawn_worker(worker, &code, theirs, &pid);
	if (r < 0)
		return r;
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0) {
		r = -errno;
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return r;
	}
	*ret_socket = take_fd(ours);
	*ret_pidfd = pidfd;
	return 0;
}

int isolated_process_start(const struct instance *i, int *ret_socket, int *ret_pidfd)
{
	return start_component(i, ISOLATED, ret_socket, ret_pidfd);
}

static int32_t start(uint64_t instance, enum kind kind, int32_t *ret_socket, int32_t *ret_pidfd)
{
	_cleanup_(instance_unrefp) struct instance *i = instance_get(instance);

	if (!i || !ret_socket || !ret_pidfd)
		return -EINVAL;
	return start_component(i, kind, ret_socket, ret_pidfd);
}

static int32_t worker_start(void *self, uint64_t instance, int32_t *ret_socket, int32_t *ret_pidfd)
{
	return start(instance, PARSES, ret_socket, ret_pidfd);
}

static int32_t sender_start(void *self, uint64_t instance, int32_t *ret_socket, int32_t *ret_pidfd)
{
	return start(instance, SENDS, ret_socket, ret_pidfd);
}

const struct andiron_subprocess sandboxed_worker = {
	.size = sizeof(sandboxed_worker), .start = worker_start, .start_sender = sender_start};

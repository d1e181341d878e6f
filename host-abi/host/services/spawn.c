/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes for components (andiron/host.h, spawn).
 *
 * The child is followed by its pidfd, so nobody needs SIGCHLD. Its input is a memfd that is written
 * before it starts, which spares feeding a pipe; its output and errors are pipes that the loop
 * empties, keeping at most max_output bytes of each and throwing the rest away, so that it never
 * blocks on us. It is over when it has exited: a grandchild that keeps the pipes open is not waited
 * for. */
#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "host/services/callbacks.h"
#include "host/state.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define OUTPUT_MAX ((uint64_t)16 << 20)

struct child;

struct stream {
	struct loop_watch watch;
	struct child *child;
	struct buf data;
};

struct child {
	struct job job;
	struct loop_task begin;
	struct instance *instance;
	uint64_t id;
	pid_t pid;
	struct loop_watch exited;
	struct loop_timer deadline;
	int64_t deadline_ns;
	bool late;
	int status;
	struct stream output, errors;
	andiron_spawn_fn fn;
	void *arg;
};

static void close_watch(struct child *c, struct loop_watch *w)
{
	if (w->id)
		loop_watch_remove(&c->instance->host->loop, w);
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
}

static void child_free(struct child *c)
{
	struct instance *i = c->instance;

	close_watch(c, &c->exited);
	close_watch(c, &c->output.watch);
	close_watch(c, &c->errors.watch);
	buf_free(&c->output.data);
	buf_free(&c->errors.data);
	loop_timer_fini(&i->host->loop, &c->deadline);
	pthread_mutex_lock(&i->lock);
	slots_remove(&i->children, c->id);
	pthread_mutex_unlock(&i->lock);
	free(c);
}

/* Takes what the pipe has now; false at its end. */
static bool read_stream(struct stream *s)
{
	char chunk[4096];

	for (;;) {
		ssize_t n = read(s->watch.fd, chunk, sizeof(chunk));
		size_t room = s->data.limit - s->data.n;

		check(s->data.n <= s->data.limit);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 && errno == EAGAIN;
		buf_append(&s->data, chunk, (size_t)n < room ? (size_t)n : room);
	}
}

static void stream_ready(struct loop_watch *w, uint32_t events)
{
	struct stream *s = container_of(w, struct stream, watch);

	if (!read_stream(s) || loop_watch_arm(&s->child->instance->host->loop, w, EPOLLIN) < 0)
		close_watch(s->child, w);
}

static void report(struct job *job)
{
	struct child *c = container_of(job, struct child, job);
	struct instance *i = c->instance;
	struct andiron_spawn_result result = {
		.size = sizeof(result),
		.status = c->late ? -ETIMEDOUT : c->status,
		.output = {c->output.data.p, c->output.data.n},
		.errors = {c->errors.data.p, c->errors.data.n},
	};

	check(c->exited.fd < 0 && c->output.watch.fd < 0 && c->errors.watch.fd < 0);
	c->fn(c->arg, &result);
	child_free(c);
	strand_release(&i->strand);
	host_poke(i->host);
}

static void child_exited(struct loop_watch *w, uint32_t events)
{
	struct child *c = container_of(w, struct child, exited);
	struct loop *loop = &c->instance->host->loop;
	pid_t ended;

	check(c->pid > 0);
	ended = waitpid(c->pid, &c->status, WNOHANG);
	if (ended == 0) {
		loop_watch_arm(loop, w, EPOLLIN);
		return;
	}
	if (ended < 0) /* the program that embeds us has taken its end: nobody knows how it was */
		c->status = -ECHILD;
	loop_timer_cancel(loop, &c->deadline);
	close_watch(c, &c->exited);
	if (c->output.watch.fd >= 0)
		read_stream(&c->output);
	if (c->errors.watch.fd >= 0)
		read_stream(&c->errors);
	close_watch(c, &c->output.watch);
	close_watch(c, &c->errors.watch);
	strand_submit(&c->instance->strand, &c->job);
}

static void child_kill(const struct child *c)
{
	if (c->exited.fd >= 0)
		syscall(SYS_pidfd_send_signal, c->exited.fd, SIGKILL, NULL, 0);
}

static void child_late(struct loop_timer *timer)
{
	struct child *c = container_of(timer, struct child, deadline);

	c->late = true;
	child_kill(c);
}

/* On the loop, since that is where its events are handled. A descriptor that cannot be watched is
 * closed; without a watch on the pidfd the child is killed and waited for at once, which then takes
 * no time. */
static void child_begin(struct loop_task *task)
{
	struct child *c = container_of(task, struct child, begin);
	struct loop *loop = &c->instance->host->loop;

	if (loop_watch_add(loop, &c->output.watch, EPOLLIN) < 0)
		close_watch(c, &c->output.watch);
	if (loop_watch_add(loop, &c->errors.watch, EPOLLIN) < 0)
		close_watch(c, &c->errors.watch);
	if (loop_watch_add(loop, &c->exited, EPOLLIN) < 0) {
		child_kill(c);
		waitpid(c->pid, &c->status, 0);
		close_watch(c, &c->exited);
		close_watch(c, &c->output.watch);
		close_watch(c, &c->errors.watch);
		strand_submit(&c->instance->strand, &c->job);
		return;
	}
	loop_timer_set(loop, &c->deadline, c->deadline_ns);
}

static int input_fd(struct andiron_str input, int *ret_fd)
{
	_cleanup_(closep) int fd = memfd_create("andiron-input", MFD_CLOEXEC);
	int r;

	if (fd < 0)
		return -errno;
	r = file_write_fd(fd, input.ptr, input.len);
	if (r < 0)
		return r;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	*ret_fd = take_fd(fd);
	return 0;
}

/* Its end becomes descriptor `as` of the child; ours does not block. */
static int add_pipe(posix_spawn_file_actions_t *actions, int as, int *ret_ours, int *ret_theirs)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	*ret_ours = fds[0];
	*ret_theirs = fds[1];
	if (fcntl(fds[0], F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	return -posix_spawn_file_actions_adddup2(actions, fds[1], as);
}

/* No signal is blocked or ignored in the child, whatever thread starts it. */
static int start(struct child *c, const struct andiron_spawn *s,
		 posix_spawn_file_actions_t *actions)
{
	char *const *envp = (char *const *)(uintptr_t)s->envp;
	char *const none[] = {NULL};
	posix_spawnattr_t attr;
	sigset_t signals;
	int r;

	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	sigemptyset(&signals);
	posix_spawnattr_setsigmask(&attr, &signals);
	sigfillset(&signals);
	posix_spawnattr_setsigdefault(&attr, &signals);
	r = posix_spawn(&c->pid, s->argv[0], actions, &attr, (char *const *)(uintptr_t)s->argv,
			envp ? envp : none);
	posix_spawnattr_destroy(&attr);
	return -r;
}

static int start_wired(struct child *c, const struct andiron_spawn *s)
{
	_cleanup_(closep) int input = -1;
	_cleanup_(closep) int output = -1;
	_cleanup_(closep) int errors = -1;
	posix_spawn_file_actions_t actions;
	int r;

	posix_spawn_file_actions_init(&actions);
	r = input_fd(s->input, &input);
	if (r == 0)
		r = -posix_spawn_file_actions_adddup2(&actions, input, 0);
	if (r == 0)
		r = add_pipe(&actions, 1, &c->output.watch.fd, &output);
	if (r == 0)
		r = add_pipe(&actions, 2, &c->errors.watch.fd, &errors);
	if (r == 0)
		r = start(c, s, &actions);
	posix_spawn_file_actions_destroy(&actions);
	return r;
}

static int follow(struct child *c)
{
	int r;

	/* It cannot be another process: nobody else waits for this child. */
	c->exited.fd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	if (c->exited.fd >= 0)
		return 0;
	r = -errno;
	kill(c->pid, SIGKILL);
	waitpid(c->pid, NULL, 0);
	return r;
}

static struct child *child_new(struct instance *i, const struct andiron_spawn *s)
{
	uint64_t limit = s->max_output < OUTPUT_MAX ? s->max_output : OUTPUT_MAX;
	struct child *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	if (loop_timer_init(&i->host->loop, &c->deadline, child_late) < 0) {
		free(c);
		return NULL;
	}
	c->instance = i;
	c->job.light = report;
	c->begin.run = child_begin;
	c->exited = (struct loop_watch){.ready = child_exited, .fd = -1};
	c->output.watch = c->errors.watch = (struct loop_watch){.ready = stream_ready, .fd = -1};
	c->output.child = c->errors.child = c;
	c->output.data.limit = c->errors.data.limit = limit ? limit : 1;
	pthread_mutex_lock(&i->lock);
	c->id = slots_add(&i->children, c);
	pthread_mutex_unlock(&i->lock);
	if (!c->id) {
		child_free(c);
		return NULL;
	}
	return c;
}

int calls_spawn(struct instance *i, const struct andiron_spawn *s, andiron_spawn_fn fn, void *arg)
{
	struct child *c;
	int64_t deadline;
	int r;

	if (!ANDIRON_KNOWS(s, andiron_spawn, max_output) || !s->argv || !s->argv[0] ||
	    s->argv[0][0] != '/')
		return -EINVAL;
	if (!strand_hold(&i->strand))
		return -ESHUTDOWN;
	c = child_new(i, s);
	r = c ? start_wired(c, s) : -ENOMEM;
	if (r == 0)
		r = follow(c);
	if (r < 0) {
		if (c)
			child_free(c);
		strand_release(&i->strand);
		return r;
	}
	c->fn = fn;
	c->arg = arg;
	c->deadline_ns = __builtin_add_overflow(clock_mono(), s->deadline_ns, &deadline) ? INT64_MAX
											 : deadline;
	loop_post(&i->host->loop, &c->begin);
	return 0;
}

void calls_kill_children(struct instance *i)
{
	pthread_mutex_lock(&i->lock);
	vec_each (&i->children.list, slot)
		if (slot->p)
			child_kill(slot->p);
	pthread_mutex_unlock(&i->lock);
}

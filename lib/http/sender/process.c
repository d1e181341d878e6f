/* SPDX-License-Identifier: Apache-2.0 */
/* The life of the process, seen from outside. Contract in sender-private.h. */
#include "http/sender/sender-private.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "http/sender/wire.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LEAVE_MS 500 /* to take leave of servers */
#define END_MS	 100 /* which one that was killed takes to end, unless it waits in the kernel */

void sender_clear_aside(struct sender *a)
{
	vec_each (&a->aside, m)
		buf_free(&m->payload);
	a->aside.n = 0;
	a->aside_bytes = 0;
}

/* Whether the one that was killed has ended by now. */
static void try_to_reap(struct sender *a)
{
	siginfo_t info = {0};
	int r;

	if (a->unreaped < 0)
		return;
	r = waitid((idtype_t)P_PIDFD, (id_t)a->unreaped, &info, WEXITED | WNOHANG);
	if (r < 0 || info.si_pid)
		close(take_fd(a->unreaped));
}

void sender_forget_unreaped(struct sender *a)
{
	try_to_reap(a);
	closep(&a->unreaped);
	a->unreaped = -1;
}

void sender_stop(struct sender *a, bool leave, char *ret_how, size_t n)
{
	struct pollfd gone = {.fd = a->pidfd, .events = POLLIN};
	siginfo_t info = {0};
	int r;

	if (!leave || poll(&gone, 1, LEAVE_MS) <= 0)
		syscall(SYS_pidfd_send_signal, a->pidfd, SIGKILL, NULL, 0);
	while (poll(&gone, 1, END_MS) < 0 && errno == EINTR)
		;
	r = waitid((idtype_t)P_PIDFD, (id_t)a->pidfd, &info, WEXITED | WNOHANG);
	if (r == 0 && !info.si_pid) {
		sender_forget_unreaped(a);
		a->unreaped = take_fd(a->pidfd);
	} else {
		close(take_fd(a->pidfd));
	}
	if (r < 0) /* a program may reap the children of all its parts */
		snprintf(ret_how, n, "it ended");
	else if (!info.si_pid)
		snprintf(ret_how, n, "it was killed and has not ended yet");
	else if (info.si_code == CLD_EXITED)
		snprintf(ret_how, n, "it ended with %d", info.si_status);
	else
		snprintf(ret_how, n, "signal %d ended it", info.si_status);
}

void sender_discard(struct sender *a, bool leave, char *ret_how, size_t n)
{
	if (a->channel.fd < 0)
		return;
	a->loop.watch(a->loop.context, a->channel.fd, 0);
	close(a->channel.fd);
	channel_fini(&a->channel);
	if (a->pidfd >= 0)
		sender_stop(a, leave, ret_how, n);
	sender_clear_aside(a);
	a->ready = a->heard_out = a->watches_out = false;
	a->broken = 0;
}

int sender_start(struct sender *a)
{
	int socket, pidfd, r = a->process.start(a->process.context, &socket, &pidfd);

	try_to_reap(a);
	if (r < 0)
		return r;
	a->pidfd = pidfd;
	r = channel_init(&a->channel, socket, WIRE_MAX_ANSWER);
	if (r < 0) {
		char how[64];

		close(socket);
		sender_stop(a, false, how, sizeof(how));
		a->channel.fd = -1;
		return r;
	}
	a->starts++;
	a->started_ns = clock_mono();
	a->silent_ns = 0;
	a->told = ERROR_NULL;
	a->loop.watch(a->loop.context, a->channel.fd, HTTP_IN);
	return 0;
}

/* When the process, or one of its requests, is to be looked at; INT64_MAX: never. */
static int64_t due_of(const struct sender *a, int64_t now)
{
	const struct due *first = due_first(&a->deadlines);
	int64_t at = first ? first->at_ns : INT64_MAX, other = INT64_MAX;

	if (a->channel.fd < 0)
		other = a->next_ns;
	else if (a->broken || a->aside.n)
		other = now;
	else if (!a->ready)
		other = a->started_ns + HTTP_SENDER_WAIT_MS * NS_PER_MSEC;
	else if (a->silent_ns)
		other = a->silent_ns + HTTP_SENDER_WAIT_MS * NS_PER_MSEC;
	return other < at ? other : at;
}

static void watch_out(struct sender *a)
{
	bool out = a->channel.fd >= 0 && channel_waits(&a->channel);

	if (out == a->watches_out)
		return;
	a->watches_out = out;
	a->loop.watch(a->loop.context, a->channel.fd, out ? HTTP_IN | HTTP_OUT : HTTP_IN);
}

static int64_t due_of_former(const struct sender *a, int64_t now)
{
	int64_t at = due_of(a->former, now);

	if (!a->former->requests.items.n)
		return now;
	return a->former_until_ns < at ? a->former_until_ns : at;
}

void sender_arm(struct sender *a)
{
	int64_t now = clock_mono(), at = due_of(a, now);

	watch_out(a);
	if (a->former) {
		int64_t of_former = due_of_former(a, now);

		watch_out(a->former);
		at = of_former < at ? of_former : at;
	}
	if (at == a->armed_ns)
		return;
	a->armed_ns = at;
	if (at == INT64_MAX)
		a->loop.timer(a->loop.context, -1);
	else
		a->loop.timer(a->loop.context,
			      at <= now ? 0 : (at - now + NS_PER_MSEC - 1) / NS_PER_MSEC);
}

const char *sender_reason(const struct sender *a, const char *how)
{
	switch (a->broken) {
	case -EPIPE:
		return how;
	case -EPERM:
	case -EAGAIN:
		return a->told.text;
	case -ETIMEDOUT:
		return "it did not answer and was ended";
	case -ESTALE:
		return "files that it reads were replaced";
	case -EBADMSG:
		return "it said what it may not, and was ended";
	default:
		return strerror(-a->broken);
	}
}

void sender_plan_next(struct sender *a, const char *why)
{
	int64_t now = clock_mono();
	bool lived = now - a->started_ns > HTTP_SENDER_LAST_MS * NS_PER_MSEC;

	a->wait_ms = lived || !a->wait_ms ? HTTP_SENDER_FIRST_MS : 2 * a->wait_ms;
	if (a->wait_ms > HTTP_SENDER_LAST_MS)
		a->wait_ms = HTTP_SENDER_LAST_MS;
	a->next_ns = now + a->wait_ms * NS_PER_MSEC;
	snprintf(a->why, sizeof(a->why), "%.199s", why);
	a->process.ended(a->process.context, why, a->wait_ms);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in acted.h. */
#include "http/tests/acted.h"

#include "testing/test.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct acted_process fork_one(const struct acted *a)
{
	struct acted_process p;
	int fds[2];

	expect(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0);
	p = (struct acted_process){fds[0], fork()};
	expect(p.pid >= 0);
	if (p.pid == 0) {
		/* Those that were forked after it have its other end, too. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(fds[0]);
		if (!a->script)
			_exit(http_serve(fds[1]) < 0);
		a->script(fds[1]);
		_exit(7);
	}
	close(fds[1]);
	return p;
}

static int start(void *context, int *ret_socket, int *ret_pidfd)
{
	struct acted *a = context;
	struct acted_process p;

	a->starts++;
	a->stale = false;
	if (a->fault)
		return a->fault;
	p = a->further ? a->forked[--a->further] : fork_one(a);
	a->pid = p.pid;
	*ret_socket = p.socket;
	*ret_pidfd = (int)syscall(SYS_pidfd_open, a->pid, 0);
	return *ret_pidfd < 0 ? -errno : 0;
}

static void ended(void *context, const char *why, int64_t after_ms)
{
	struct acted *a = context;

	a->ends++;
	a->after_ms = after_ms;
	snprintf(a->why, sizeof(a->why), "%s", why);
}

static bool is_stale(void *context)
{
	return ((const struct acted *)context)->stale;
}

int acted_client(struct acted *a, struct test_loop *loop, struct error *err)
{
	const struct http_process process = {a, start, ended, is_stale, a->stale_ms};
	struct http_loop hooks;
	int r;

	expect_eq(http_polled_hooks(&loop->poll, &hooks), 0);
	loop->client = NULL;
	r = http_sender_new(&hooks, &process, &loop->client, err);
	loop->poll.client = loop->client;
	return r;
}

void acted_begin(struct exchange *x, struct acted *a, test_serve_fn serve, void *context)
{
	struct error err = ERROR_NULL;
	int further = a->further;

	memset(x, 0, sizeof(*x));
	a->further = 0;
	if (acted_client(a, &x->loop, &err))
		test_fail(__FILE__, __LINE__, "%s", err.text);
	for (; a->further < further; a->further++)
		a->forked[a->further] = fork_one(a);
	exchange_serve(x, serve, context);
}

static void on_left(void *context)
{
	*(bool *)context = true;
}

void note_done(void *context, const struct http_response *r)
{
	*(bool *)context = true;
}

uint64_t acted_hang(struct exchange *x, bool *flag)
{
	struct http_request q = x->request;
	struct error err = ERROR_NULL;
	uint64_t id;

	*flag = false;
	q.left = on_left;
	q.done = note_done;
	q.context = flag;
	expect_eq(http_send(x->loop.client, &x->config, &q, &id, &err), 0);
	expect(test_loop_until(&x->loop, flag, 60000));
	return id;
}

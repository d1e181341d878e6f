/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in acted.h. */
#include "http/tests/acted.h"

#include "testing/test.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int start(void *context, int *ret_socket, int *ret_pidfd)
{
	struct acted *a = context;
	int fds[2];

	a->starts++;
	a->stale = false;
	if (a->fault)
		return a->fault;
	expect(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0);
	a->pid = fork();
	expect(a->pid >= 0);
	if (a->pid == 0) {
		close(fds[0]);
		if (!a->script)
			_exit(http_serve(fds[1]) < 0);
		a->script(fds[1]);
		_exit(7);
	}
	close(fds[1]);
	*ret_socket = fds[0];
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

	memset(x, 0, sizeof(*x));
	if (acted_client(a, &x->loop, &err))
		test_fail(__FILE__, __LINE__, "%s", err.text);
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

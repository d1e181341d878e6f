/* SPDX-License-Identifier: Apache-2.0 */
/* Watches and the one timer by poll(2). Contract in polled.h. */
#include "http/polled.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>

static void on_watch(void *context, int fd, uint32_t events)
{
	struct http_polled *loop = context;
	short flags = (short)((events & HTTP_IN ? POLLIN : 0) | (events & HTTP_OUT ? POLLOUT : 0));
	const struct pollfd watched = {.fd = fd, .events = flags};
	size_t i = 0;

	while (i < loop->fds.n && loop->fds.p[i].fd != fd)
		i++;
	if (i < loop->fds.n)
		loop->fds.p[i] = events ? watched : loop->fds.p[--loop->fds.n];
	else if (events && vec_reserve(&loop->ready, i + 2))
		/* A watch that cannot be had shows as a request that times out. */
		(void)vec_push(&loop->fds, watched);
}

static void on_timer(void *context, int64_t after_ms)
{
	struct http_polled *loop = context;

	loop->deadline_ns = after_ms < 0 ? INT64_MAX : clock_mono() + after_ms * NS_PER_MSEC;
}

int http_polled_hooks(struct http_polled *loop, struct http_loop *ret)
{
	*loop = (struct http_polled){.deadline_ns = INT64_MAX};
	*ret = (struct http_loop){loop, on_watch, on_timer};
	return vec_reserve(&loop->ready, 1) ? 0 : -ENOMEM;
}

int http_polled_init(struct http_polled *loop, struct error *err)
{
	struct http_loop hooks;
	int r = http_polled_hooks(loop, &hooks);

	if (r == 0)
		r = http_client_new(&hooks, &loop->client, err);
	if (r < 0)
		vec_free(&loop->ready);
	return r;
}

void http_polled_fini(struct http_polled *loop)
{
	http_client_free(loop->client);
	vec_free(&loop->fds);
	vec_free(&loop->ready);
}

static void report(struct http_polled *loop, const struct pollfd *p)
{
	uint32_t events = (p->revents & POLLIN ? HTTP_IN : 0) |
			  (p->revents & POLLOUT ? HTTP_OUT : 0);

	if (p->revents & (POLLHUP | POLLERR))
		events |= HTTP_IN | HTTP_OUT;
	if (events)
		http_ready(loop->client, p->fd, events);
}

void http_polled_turn(struct http_polled *loop, struct pollfd *more, int64_t until_ns)
{
	size_t n = loop->fds.n;
	int64_t wake = loop->deadline_ns < until_ns ? loop->deadline_ns : until_ns;
	int64_t wait = (wake - clock_mono() + NS_PER_MSEC - 1) / NS_PER_MSEC;

	/* Watches change while they are reported. */
	check(n < loop->ready.capacity);
	if (n)
		memcpy(loop->ready.p, loop->fds.p, n * sizeof(*loop->fds.p));
	if (more)
		loop->ready.p[n] = *more;
	wait = wait <= 0 ? 0 : wait > INT32_MAX ? INT32_MAX : wait;
	poll(loop->ready.p, n + (more != NULL), (int)wait);
	for (size_t i = 0; i < n; i++)
		report(loop, &loop->ready.p[i]);
	if (clock_mono() >= loop->deadline_ns) {
		loop->deadline_ns = INT64_MAX;
		http_timeout(loop->client);
	}
}

bool http_polled_until(struct http_polled *loop, const bool *flag, int64_t timeout_ms)
{
	int64_t until = clock_mono() + timeout_ms * NS_PER_MSEC;

	while (!*flag && clock_mono() < until)
		http_polled_turn(loop, NULL, until);
	return *flag;
}

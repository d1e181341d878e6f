/* SPDX-License-Identifier: Apache-2.0 */
/* Watches and the one timer by epoll(7): poll(2) would go through thousands of targets of a scraper
 * for each of them that answers. Contract in polled.h. */
#include "http/polled.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#define AT_ONCE 64

static uint8_t *watch_of(struct http_polled *loop, int fd)
{
	size_t at = (size_t)fd, n = loop->watched.n;

	if (at >= n) {
		if (!vec_reserve(&loop->watched, at + 1 - n))
			return NULL;
		memset(loop->watched.p + n, 0, at + 1 - n);
		loop->watched.n = at + 1;
	}
	return &loop->watched.p[at];
}

/* A watch that cannot be had shows as a request that times out. */
static void on_watch(void *context, int fd, uint32_t events)
{
	struct http_polled *loop = context;
	struct epoll_event event = {.data.fd = fd};
	uint8_t *watch;

	check(fd >= 0);
	watch = watch_of(loop, fd);
	if (!watch || (!*watch && !events))
		return;
	if (events & HTTP_IN)
		event.events |= EPOLLIN;
	if (events & HTTP_OUT)
		event.events |= EPOLLOUT;
	if (!events)
		epoll_ctl(loop->epoll, EPOLL_CTL_DEL, fd, &event);
	else if (epoll_ctl(loop->epoll, EPOLL_CTL_MOD, fd, &event) < 0 &&
		 epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		return;
	loop->n_watched += (size_t)(events != 0) - (size_t)(*watch != 0);
	*watch = (uint8_t)events;
}

static void on_timer(void *context, int64_t after_ms)
{
	struct http_polled *loop = context;

	loop->deadline_ns = after_ms < 0 ? INT64_MAX : clock_mono() + after_ms * NS_PER_MSEC;
}

int http_polled_hooks(struct http_polled *loop, struct http_loop *ret)
{
	*loop = (struct http_polled){.more = -1, .deadline_ns = INT64_MAX};
	*ret = (struct http_loop){loop, on_watch, on_timer};
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	return loop->epoll < 0 ? -errno : 0;
}

int http_polled_init(struct http_polled *loop, struct error *err)
{
	struct http_loop hooks;
	int r = http_polled_hooks(loop, &hooks);

	if (r < 0)
		return error_errno(err, r, "cannot wait for servers");
	r = http_client_new(&hooks, &loop->client, err);
	if (r < 0)
		close(take_fd(loop->epoll));
	return r;
}

void http_polled_fini(struct http_polled *loop)
{
	http_client_free(loop->client);
	close(take_fd(loop->epoll));
	vec_free(&loop->watched);
}

int http_polled_more(struct http_polled *loop, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	loop->more = fd;
	return epoll_ctl(loop->epoll, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static void report(struct http_polled *loop, const struct epoll_event *e)
{
	uint32_t events = (e->events & EPOLLIN ? HTTP_IN : 0) |
			  (e->events & EPOLLOUT ? HTTP_OUT : 0);

	if (e->events & (EPOLLHUP | EPOLLERR))
		events |= HTTP_IN | HTTP_OUT;
	if (events && e->data.fd != loop->more)
		http_ready(loop->client, e->data.fd, events);
}

void http_polled_turn(struct http_polled *loop, int64_t until_ns)
{
	int64_t wake = loop->deadline_ns < until_ns ? loop->deadline_ns : until_ns;
	int64_t wait = (wake - clock_mono() + NS_PER_MSEC - 1) / NS_PER_MSEC;
	struct epoll_event events[AT_ONCE];
	int n;

	wait = wait <= 0 ? 0 : wait > INT32_MAX ? INT32_MAX : wait;
	n = epoll_wait(loop->epoll, events, AT_ONCE, (int)wait);
	for (int i = 0; i < n; i++)
		report(loop, &events[i]);
	if (clock_mono() >= loop->deadline_ns) {
		loop->deadline_ns = INT64_MAX;
		http_timeout(loop->client);
	}
}

bool http_polled_until(struct http_polled *loop, const bool *flag, int64_t timeout_ms)
{
	int64_t until = clock_mono() + timeout_ms * NS_PER_MSEC;

	while (!*flag && clock_mono() < until)
		http_polled_turn(loop, until);
	return *flag;
}

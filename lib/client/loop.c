/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP client on the host's loop. Contract in loop.h. */
#include "client/loop.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>

struct watched {
	int fd;
	uint64_t id;
};

struct client_loop {
	struct abi_context context;
	struct http_client *http;
	VEC(struct watched) watched; /* a handful: searched linearly */
	uint64_t timer;
};

static void on_ready(void *arg, int32_t fd, uint32_t events)
{
	struct client_loop *loop = arg;

	http_ready(loop->http, fd, events);
}

static struct watched *find(struct client_loop *loop, int fd)
{
	vec_each (&loop->watched, w)
		if (w->fd == fd)
			return w;
	return NULL;
}

static void forget(struct client_loop *loop, struct watched *w)
{
	check(loop->watched.n > 0);
	loop->context.host->watch_remove(loop->context.instance, w->id);
	*w = loop->watched.p[--loop->watched.n];
}

/* A watch that cannot be had shows as a request that times out. */
static void on_watch(void *arg, int fd, uint32_t events)
{
	struct client_loop *loop = arg;
	const struct andiron_host *host = loop->context.host;
	struct watched *w = find(loop, fd), fresh = {.fd = fd};

	if (w && !events)
		forget(loop, w);
	else if (w)
		host->watch_modify(loop->context.instance, w->id, events);
	else if (events && vec_reserve(&loop->watched, 1) &&
		 host->watch_add(loop->context.instance, fd, events, on_ready, loop, &fresh.id) ==
			 0)
		loop->watched.p[loop->watched.n++] = fresh;
}

static void on_timeout(void *arg)
{
	struct client_loop *loop = arg;

	check(loop->timer != 0);
	loop->timer = 0;
	http_timeout(loop->http);
}

static void on_timer(void *arg, int64_t after_ms)
{
	struct client_loop *loop = arg;
	const struct andiron_host *host = loop->context.host;

	if (loop->timer)
		host->timer_cancel(loop->context.instance, loop->timer);
	loop->timer = 0;
	if (after_ms >= 0)
		host->timer_set(loop->context.instance, after_ms * NS_PER_MSEC, 0, on_timeout, loop,
				&loop->timer);
}

int client_loop_new(const struct abi_context *context, struct client_loop **ret, struct error *err)
{
	struct client_loop *loop = calloc(1, sizeof(*loop));
	struct http_loop hooks = {.context = loop, .watch = on_watch, .timer = on_timer};
	int r;

	if (!loop)
		return -ENOMEM;
	loop->context = *context;
	r = http_client_new(&hooks, &loop->http, err);
	if (r < 0) {
		free(loop);
		return r;
	}
	*ret = loop;
	return 0;
}

void client_loop_free(struct client_loop *loop)
{
	if (!loop)
		return;
	http_client_free(loop->http);
	while (loop->watched.n)
		forget(loop, &loop->watched.p[0]);
	on_timer(loop, -1);
	check(!loop->timer);
	vec_free(&loop->watched);
	free(loop);
}

struct http_client *client_loop_http(struct client_loop *loop)
{
	return loop->http;
}

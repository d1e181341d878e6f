/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP client on the host's loop. Contract in loop.h. */
#include "client/loop.h"

#include "abi/metrics.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/vec.h"
#include "client/sender.h"
#include "http/sender/sender.h"

#include <errno.h>
#include <stdlib.h>

struct client_loop {
	struct abi_context context;
	struct http_client *http;
	bool sends;
	struct client_sender sender;
	VEC(uint64_t) watches; /* by descriptor; 0: not watched */
	uint64_t timer;
};

static void on_ready(void *arg, int32_t fd, uint32_t events)
{
	struct client_loop *loop = arg;

	http_ready(loop->http, fd, events);
}

/* A watch that cannot be had shows as a request that times out. */
static void on_watch(void *arg, int fd, uint32_t events)
{
	struct client_loop *loop = arg;
	const struct andiron_host *host = loop->context.host;
	size_t at = (size_t)fd;
	uint64_t *watch;

	check(fd >= 0);
	if (at >= loop->watches.n && !events)
		return;
	if (at >= loop->watches.n) {
		size_t more = at + 1 - loop->watches.n;

		if (!vec_reserve(&loop->watches, more))
			return;
		memset(loop->watches.p + loop->watches.n, 0, more * sizeof(*loop->watches.p));
		loop->watches.n += more;
	}
	watch = &loop->watches.p[at];
	if (*watch && events) {
		host->watch_modify(loop->context.instance, *watch, events);
	} else if (*watch) {
		host->watch_remove(loop->context.instance, *watch);
		*watch = 0;
	} else if (events &&
		   host->watch_add(loop->context.instance, fd, events, on_ready, loop, watch) < 0) {
		*watch = 0;
	}
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

static struct client_loop *loop_of(const struct abi_context *context, struct http_loop *ret)
{
	struct client_loop *loop = calloc(1, sizeof(*loop));

	if (loop)
		loop->context = *context;
	*ret = (struct http_loop){.context = loop, .watch = on_watch, .timer = on_timer};
	return loop;
}

int client_loop_new(const struct abi_context *context, struct client_loop **ret, struct error *err)
{
	struct http_loop hooks;
	struct client_loop *loop = loop_of(context, &hooks);
	int r = loop ? http_client_new(&hooks, &loop->http, err) : -ENOMEM;

	if (r < 0) {
		free(loop);
		return r;
	}
	*ret = loop;
	return 0;
}

static int on_start(void *arg, int *ret_socket, int *ret_pidfd)
{
	struct client_loop *loop = arg;

	return client_sender_start(&loop->sender, ret_socket, ret_pidfd);
}

static void on_ended(void *arg, const char *why, int64_t after_ms)
{
	const struct client_loop *loop = arg;
	char time[32];

	abi_log(&loop->context, ANDIRON_LOG_WARN,
		"the process that speaks to servers has ended (%s); another is started in %s", why,
		duration_format(after_ms * NS_PER_MSEC, time, sizeof(time)));
}

static bool is_stale(void *arg)
{
	struct client_loop *loop = arg;

	return client_sender_is_stale(&loop->sender, clock_mono());
}

int client_loop_start(const struct abi_context *context, struct client_loop **ret,
		      struct error *err)
{
	struct http_loop hooks;
	struct client_loop *loop = loop_of(context, &hooks);
	const struct http_process process = {loop, on_start, on_ended, is_stale};
	int r;

	if (!loop)
		return -ENOMEM;
	if (!client_sender_init(&loop->sender, context)) {
		free(loop);
		return client_loop_new(context, ret, err);
	}
	r = http_sender_new(&hooks, &process, &loop->http, err);
	if (r < 0) {
		vec_free(&loop->watches);
		free(loop);
		return r;
	}
	loop->sends = true;
	*ret = loop;
	return 0;
}

int32_t client_serve(int32_t socket)
{
	return http_serve(socket);
}

void client_loop_metrics(const struct client_loop *loop, const struct andiron_metric_sink *sink)
{
	uint64_t starts = loop && loop->sends ? http_sender_starts(loop->http) : 0;
	const struct abi_metric m = {
		.name = "andiron_sender_restarts_total",
		.help = "How often the process that speaks to servers was replaced.",
		.value = starts ? (double)(starts - 1) : 0,
	};

	if (loop && loop->sends)
		abi_metric(sink, &m);
}

void client_loop_free(struct client_loop *loop)
{
	if (!loop)
		return;
	http_client_free(loop->http);
	vec_each (&loop->watches, watch)
		if (*watch)
			loop->context.host->watch_remove(loop->context.instance, *watch);
	on_timer(loop, -1);
	check(!loop->timer);
	vec_free(&loop->watches);
	free(loop);
}

struct http_client *client_loop_http(struct client_loop *loop)
{
	return loop->http;
}

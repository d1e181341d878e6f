/* SPDX-License-Identifier: Apache-2.0 */
/* The server on the host's loop. Contract in listener.h. */
#include "http-server/listener.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>

static bool limits_equal(const struct server_limits *a, const struct server_limits *b)
{
	return a->connections == b->connections && a->memory == b->memory &&
	       a->request_s == b->request_s && a->answer_s == b->answer_s &&
	       a->idle_s == b->idle_s && a->max_body == b->max_body &&
	       a->max_bodies == b->max_bodies;
}

static bool options_equal(const struct server_options *a, const struct server_options *b)
{
	return a->open == b->open && a->port == b->port && !a->address == !b->address &&
	       str_eq(str_of(a->address), str_of(b->address)) &&
	       str_eq(str_of(a->cert), str_of(b->cert)) && str_eq(str_of(a->key), str_of(b->key)) &&
	       limits_equal(&a->limits, &b->limits);
}

int listener_init(struct listener *l, const struct abi_context *context,
		  const struct server_events *events, const struct server_options *options)
{
	*l = (struct listener){.context = *context, .events = *events};
	return server_options_copy(&l->options, options);
}

void listener_fini(struct listener *l)
{
	server_options_fini(&l->options);
}

static void on_timer(void *arg)
{
	((struct listener *)arg)->timer = 0;
	listener_turn(arg);
}

static void on_ready(void *arg, int32_t fd, uint32_t events)
{
	listener_turn(arg);
}

static void cancel_timer(struct listener *l)
{
	if (l->timer)
		l->context.host->timer_cancel(l->context.instance, l->timer);
	l->timer = 0;
}

void listener_turn(struct listener *l)
{
	const struct andiron_host *host = l->context.host;
	int64_t ms = server_run(l->server);

	cancel_timer(l);
	if (ms >= 0 &&
	    host->timer_set(l->context.instance, ms * NS_PER_MSEC, 0, on_timer, l, &l->timer))
		l->timer = 0;
}

/* Closes what is listened at, if anything is. */
static void leave(struct listener *l)
{
	struct server *server = l->server;

	cancel_timer(l);
	if (l->watch)
		l->context.host->watch_remove(l->context.instance, l->watch);
	l->watch = 0;
	l->server = NULL;
	server_free(server);
}

void listener_stop(struct listener *l)
{
	l->live = false;
	leave(l);
}

/* Listens at another place, beside the old one until it does. */
static int move(struct listener *l, const struct server_options *options, struct error *err)
{
	const struct abi_context *c = &l->context;
	const char *address;
	struct server *server;
	uint64_t watch;
	int rc;

	if (!options->address) {
		leave(l);
		return 0;
	}
	address = options->address[0] ? options->address : "all addresses";
	rc = server_new(options, &l->events, &server, err);
	if (rc)
		return rc;
	rc = c->host->watch_add(c->instance, server_fd(server), ANDIRON_WATCH_IN, on_ready, l,
				&watch);
	if (rc) {
		server_free(server);
		return rc;
	}
	leave(l);
	l->server = server;
	l->watch = watch;
	abi_log(c, ANDIRON_LOG_INFO, "listening at %s port %u", address, server_port(server));
	abi_health(c, ANDIRON_HEALTH_HEALTHY, "listening at %s port %u", address,
		   server_port(server));
	return 0;
}

int listener_start(struct listener *l, struct error *err)
{
	int rc = move(l, &l->options, err);

	l->live = rc == 0;
	return rc;
}

/* Where the old place is in the way of the new one: it goes first, and comes back if need be. */
static int exchange(struct listener *l, const struct server_options *options, struct error *err)
{
	struct error lost = ERROR_NULL;
	int rc;

	leave(l);
	rc = move(l, options, err);
	if (rc && move(l, &l->options, &lost))
		abi_health(&l->context, ANDIRON_HEALTH_UNHEALTHY, "%s",
			   lost.code ? lost.text : "memory is short");
	return rc;
}

int listener_update(struct listener *l, const struct server_options *options, struct error *err)
{
	struct server_options copy;
	int rc;

	if (options_equal(options, &l->options) && (l->server || !l->live))
		return 0;
	rc = server_options_copy(&copy, options);
	if (rc)
		return rc;
	if (l->live)
		rc = move(l, &copy, err);
	if (rc && l->server && options->port == server_port(l->server)) {
		*err = ERROR_NULL;
		rc = exchange(l, &copy, err);
	}
	if (rc) {
		server_options_fini(&copy);
		return rc;
	}
	server_options_fini(&l->options);
	l->options = copy;
	return 0;
}

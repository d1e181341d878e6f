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
	       str_eq(str_of(a->client_ca), str_of(b->client_ca)) && a->clients == b->clients &&
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
	l->refused = listener_refused(l);
	l->server = NULL;
	server_free(server);
}

uint64_t listener_refused(const struct listener *l)
{
	return l->refused + (l->server ? server_refused(l->server) : 0);
}

void listener_stop(struct listener *l)
{
	l->live = false;
	leave(l);
}

static bool is_due(const struct listener_change *c)
{
	const struct listener *l = c->listener;
	bool listens = l->server && server_port(l->server);

	return !options_equal(c->options, &l->options) ||
	       (l->live && l->options.address && !listens);
}

/* Whether there is to be a new server. */
static bool is_wanted(const struct listener_change *c)
{
	return c->due && c->listener->live && c->copy.address;
}

/* Whether a socket is still an old server's that is to go. */
static bool is_free(const struct listener_change *c)
{
	return c->due && !c->given && c->listener->server && server_port(c->listener->server);
}

/* Port 0 is the one that the listener had for it before, if that can be. */
static uint16_t port_of(const struct listener_change *c)
{
	return c->copy.port ? c->copy.port : c->listener->free_port;
}

static bool same_place(const struct listener_change *c, const struct listener_change *old)
{
	return str_eq(str_of(c->copy.address), str_of(old->listener->options.address)) &&
	       port_of(c) == server_port(old->listener->server);
}

/* Makes the new server; where somebody listens at its place who is to go, it takes over the
 * socket. */
static int make(struct listener_change *c, struct listener_change *changes, size_t n,
		struct error *err)
{
	int rc = server_new(&c->copy, &c->listener->events, &c->server, err);

	for (size_t i = 0; i < n && !rc; i++)
		if (is_free(&changes[i]) && same_place(c, &changes[i])) {
			rc = server_share(c->server, changes[i].listener->server);
			changes[i].given = rc == 0;
			if (rc)
				return error_errno(err, rc, "cannot take over port %u", port_of(c));
			break;
		}
	return rc;
}

/* Whoever is to go makes way where he must. */
static int open_at(struct listener_change *c, uint16_t port, struct listener_change *changes,
		   size_t n, struct error *err)
{
	struct server_options options = c->copy;
	int rc;

	options.port = port;
	rc = server_listen(c->server, &options, err);

	for (size_t i = 0; i < n && rc == -EADDRINUSE; i++) {
		struct server *old = changes[i].listener->server;

		if (!is_free(&changes[i]) || server_port(old) != port)
			continue;
		server_unlisten(old);
		changes[i].aside = true;
		*err = ERROR_NULL;
		rc = server_listen(c->server, &options, err);
	}
	c->own = rc == 0;
	return rc;
}

/* Opens the socket of a server that took over none. */
static int open_socket(struct listener_change *c, struct listener_change *changes, size_t n,
		       struct error *err)
{
	int rc = open_at(c, port_of(c), changes, n, err);

	if (rc == 0 || c->copy.port == port_of(c))
		return rc;
	*err = ERROR_NULL;
	return open_at(c, 0, changes, n, err);
}

static int watch(struct listener_change *c, struct error *err)
{
	const struct abi_context *context = &c->listener->context;
	int rc = context->host->watch_add(context->instance, server_fd(c->server), ANDIRON_WATCH_IN,
					  on_ready, c->listener, &c->watch);

	return rc ? error_errno(err, rc, "cannot watch port %u", server_port(c->server)) : 0;
}

static int prepare(struct listener_change *changes, size_t n, struct error *err)
{
	int rc = 0;

	for (size_t i = 0; i < n && !rc; i++) {
		changes[i].due = is_due(&changes[i]);
		if (changes[i].due)
			rc = server_options_copy(&changes[i].copy, changes[i].options);
	}
	for (size_t i = 0; i < n && !rc; i++)
		if (is_wanted(&changes[i]))
			rc = make(&changes[i], changes, n, err);
	for (size_t i = 0; i < n && !rc; i++)
		if (is_wanted(&changes[i]) && !server_port(changes[i].server))
			rc = open_socket(&changes[i], changes, n, err);
	for (size_t i = 0; i < n && !rc; i++)
		if (is_wanted(&changes[i]))
			rc = watch(&changes[i], err);
	return rc;
}

static void give_up(struct listener_change *changes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct abi_context *c = &changes[i].listener->context;

		if (changes[i].watch)
			c->host->watch_remove(c->instance, changes[i].watch);
		if (changes[i].own)
			server_unlisten(changes[i].server);
		server_free(changes[i].server);
		server_options_fini(&changes[i].copy);
	}
	for (size_t i = 0; i < n; i++) {
		struct error lost = ERROR_NULL;

		if (changes[i].aside && server_relisten(changes[i].listener->server, &lost))
			abi_health(&changes[i].listener->context, ANDIRON_HEALTH_UNHEALTHY, "%s",
				   lost.text);
	}
}

static void enter(struct listener_change *change)
{
	struct listener *l = change->listener;
	const struct abi_context *c = &l->context;
	const char *address;

	leave(l);
	server_options_fini(&l->options);
	l->options = change->copy;
	l->server = change->server;
	l->watch = change->watch;
	if (!l->server)
		return;
	if (!l->options.port)
		l->free_port = server_port(l->server);
	address = l->options.address[0] ? l->options.address : "all addresses";
	abi_log(c, ANDIRON_LOG_INFO, "listening at %s port %u", address, server_port(l->server));
	abi_health(c, ANDIRON_HEALTH_HEALTHY, "listening at %s port %u", address,
		   server_port(l->server));
}

int listeners_update(struct listener_change *changes, size_t n, struct error *err)
{
	int rc = prepare(changes, n, err);

	if (rc) {
		give_up(changes, n);
		return rc;
	}
	for (size_t i = 0; i < n; i++)
		if (changes[i].due)
			enter(&changes[i]);
	return 0;
}

int listener_update(struct listener *l, const struct server_options *options, struct error *err)
{
	struct listener_change change = {.listener = l, .options = options};

	return listeners_update(&change, 1, err);
}

int listener_start(struct listener *l, struct error *err)
{
	int rc;

	l->live = true;
	rc = listener_update(l, &l->options, err);
	l->live = rc == 0;
	return rc;
}

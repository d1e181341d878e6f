/* SPDX-License-Identifier: Apache-2.0 */
/* What is answered, and the server on the host's loop. Contract in service.h. */
#include "status-http/service.h"

#include "abi/value.h"
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>

static const struct andiron_status *table(const struct service *self)
{
	return self->status.table;
}

static void put_text(void *arg, const struct andiron_str *text)
{
	buf_str_append(arg, abi_str(*text));
}

static void put_line(struct buf *out, const struct andiron_component_state *c, const char *what)
{
	buf_printf(out, "%.*s: %s%.*s\n", STR_FMT(abi_str(c->id)), what,
		   STR_FMT(abi_str(c->message)));
}

struct unready {
	struct buf *out;
	uint32_t matters;
};

static void put_unready(void *arg, const struct andiron_component_state *c)
{
	const struct unready *u = arg;
	bool bad = c->health == ANDIRON_HEALTH_UNHEALTHY || c->health == ANDIRON_HEALTH_EXITED;

	if (!(c->flags & u->matters))
		return;
	if (bad)
		put_line(u->out, c, "");
	else if (!c->live)
		put_line(u->out, c, "has not started yet ");
}

static void put_exited(void *arg, const struct andiron_component_state *c)
{
	if (c->health == ANDIRON_HEALTH_EXITED)
		put_line(arg, c, "");
}

/* 200 if nobody has anything to say. */
static void finish(struct server_page *page, unsigned int bad, const char *good)
{
	page->status = page->body.n ? bad : 200;
	if (!page->body.n)
		buf_str_append(&page->body, str_of(good));
}

static void make_page(void *context, struct str path, struct server_page *page)
{
	struct service *self = context;

	if (str_is(path, "/-/ready")) {
		table(self)->components(self->status.self, put_unready,
					&(struct unready){&page->body, self->matters});
		finish(page, 503, "andiron is ready.\n");
	} else if (str_is(path, "/-/healthy")) {
		table(self)->components(self->status.self, put_exited, &page->body);
		finish(page, 500, "andiron is healthy.\n");
	} else if (str_is(path, "/metrics")) {
		page->type = "text/plain; version=0.0.4; charset=utf-8";
		page->status = table(self)->write(self->status.self, ANDIRON_STATUS_METRICS,
						  put_text, &page->body)
				       ? 500
				       : 200;
	}
}

static void turn(struct service *self);

static void on_timer(void *arg)
{
	((struct service *)arg)->timer = 0;
	turn(arg);
}

static void on_ready(void *arg, int32_t fd, uint32_t events)
{
	turn(arg);
}

static void cancel_timer(struct service *self)
{
	if (self->timer)
		self->context.host->timer_cancel(self->context.instance, self->timer);
	self->timer = 0;
}

static void turn(struct service *self)
{
	const struct andiron_host *host = self->context.host;
	int64_t ms = server_run(self->server);

	cancel_timer(self);
	if (ms >= 0 && host->timer_set(self->context.instance, ms * NS_PER_MSEC, 0, on_timer, self,
				       &self->timer))
		self->timer = 0;
}

/* Closes what is listened at, if anything is. */
static void leave(struct service *self)
{
	cancel_timer(self);
	if (self->watch)
		self->context.host->watch_remove(self->context.instance, self->watch);
	self->watch = 0;
	server_free(self->server);
	self->server = NULL;
}

void service_stop(void *self)
{
	((struct service *)self)->live = false;
	leave(self);
}

/* Listens at another place, beside the old one until it does. */
static int move(struct service *self, const char *address, uint16_t port, struct error *err)
{
	const struct abi_context *c = &self->context;
	struct server *server;
	uint64_t watch;
	int rc = server_new(address, port, make_page, self, &server, err);

	if (rc)
		return rc;
	rc = c->host->watch_add(c->instance, server_fd(server), ANDIRON_WATCH_IN, on_ready, self,
				&watch);
	if (rc) {
		server_free(server);
		return rc;
	}
	leave(self);
	self->server = server;
	self->watch = watch;
	abi_log(c, ANDIRON_LOG_INFO, "listening at %s port %u", address, server_port(server));
	abi_health(c, ANDIRON_HEALTH_HEALTHY, "listening at %s port %u", address,
		   server_port(server));
	return 0;
}

int service_start(struct service *self, struct error *err)
{
	int rc = move(self, self->address, self->port, err);

	self->live = rc == 0;
	return rc;
}

/* Where the old place is in the way of the new one: it goes first, and comes back if need be. */
static int exchange(struct service *self, const char *address, uint16_t port, struct error *err)
{
	struct error lost = ERROR_NULL;
	int rc;

	leave(self);
	rc = move(self, address, port, err);
	if (rc && move(self, self->address, self->port, &lost))
		abi_health(&self->context, ANDIRON_HEALTH_UNHEALTHY, "%s",
			   lost.code ? lost.text : "memory is short");
	return rc;
}

int service_update(struct service *self, const char *address, uint16_t port, struct error *err)
{
	bool same = port == self->port && strcmp(address, self->address) == 0;
	char *copy;
	int rc = 0;

	if (same && (self->server || !self->live))
		return 0;
	copy = str_dup(str_of(address));
	if (!copy)
		return -ENOMEM;
	if (self->live)
		rc = move(self, copy, port, err);
	if (rc && self->server && port == server_port(self->server)) {
		*err = ERROR_NULL;
		rc = exchange(self, copy, port, err);
	}
	if (rc) {
		free(copy);
		return rc;
	}
	free(self->address);
	self->address = copy;
	self->port = port;
	return 0;
}

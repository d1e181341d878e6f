/* SPDX-License-Identifier: Apache-2.0 */
/* What is answered. Contract in service.h. */
#include "status-http/service.h"

#include "abi/value.h"

struct page {
	unsigned int status;
	const char *type;
	struct buf body;
};

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
static void finish(struct page *page, unsigned int bad, const char *good)
{
	page->status = page->body.n ? bad : 200;
	if (!page->body.n)
		buf_str_append(&page->body, str_of(good));
}

static void make_page(struct service *self, struct str path, struct page *page)
{
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
	} else {
		page->status = 404;
		buf_str_append(&page->body, STR("there are /metrics, /-/ready and /-/healthy\n"));
	}
}

/* A page is answered when its head has been read. */
static void on_request(void *context, struct server_request *r)
{
	struct page page = {405, "text/plain; charset=utf-8", BUF_NULL};

	if (server_request_is(r, "GET") || server_request_is(r, "HEAD"))
		make_page(context, server_request_path(r), &page);
	if (page.body.failed)
		page.status = 500;
	server_answer(r, &(struct server_answer){
				 .status = page.status,
				 .type = page.type,
				 .body = buf_str(&page.body),
			 });
	buf_free(&page.body);
}

struct server_options service_options(const char *address, uint16_t port)
{
	return (struct server_options){
		.address = address,
		.port = port,
		.limits = {.connections = 32,
			   .memory = 8u << 10,
			   .request_s = 10,
			   .answer_s = 10,
			   .idle_s = 10},
	};
}

int service_init(struct service *self, const struct abi_context *context,
		 const struct server_options *options)
{
	const struct server_events events = {.context = self, .ready = on_request};

	return listener_init(&self->listener, context, &events, options);
}

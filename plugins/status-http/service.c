/* SPDX-License-Identifier: Apache-2.0 */
/* What is answered. Contract in service.h. */
#include "status-http/service.h"

#include "abi/value.h"
#include "base/clock.h"
#include "status-http/page.h"

#include <errno.h>
#include <stdlib.h>

#define RETRY_S      1
#define LIVE_LONGEST (24 * 3600 * NS_PER_SEC)
#define COMPONENTS   "/api/v0/web/components"

/* A look at the last minutes that a worker draws. */
struct look {
	struct live_look look;
	struct service *service;
	struct server_request *asker; /* NULL: has gone */
};

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

static void write_page(struct service *self, uint32_t what, const char *type, struct page *page)
{
	int32_t rc = table(self)->write(self->status.self, what, put_text, &page->body);

	page->status = rc == -EBUSY ? 503 : rc ? 500 : 200;
	if (rc == -EBUSY)
		buf_str_append(&page->body,
			       STR("a component is at work and cannot look now; ask again\n"));
	else if (!rc)
		page->type = type;
}

static void write_component(struct service *self, struct str id, struct page *page)
{
	const struct andiron_str asked = abi_str_of(id);
	int32_t rc = -ENOENT;

	if (ANDIRON_HAS(table(self), andiron_status, component))
		rc = table(self)->component(self->status.self, &asked, put_text, &page->body);
	page->status = rc == -ENOENT ? 404 : rc ? 500 : 200;
	if (rc == -ENOENT)
		buf_str_append(&page->body, STR("no component has this id\n"));
	else if (!rc)
		page->type = "application/json";
}

static void make_page(struct service *self, struct str path, struct page *page)
{
	if (str_is(path, "/")) {
		page->status = 200;
		page->type = "text/html; charset=utf-8";
		buf_str_append(&page->body, str_of(agent_page));
	} else if (str_is(path, "/-/ready")) {
		table(self)->components(self->status.self, put_unready,
					&(struct unready){&page->body, self->matters});
		finish(page, 503, "andiron is ready.\n");
	} else if (str_is(path, "/-/healthy")) {
		table(self)->components(self->status.self, put_exited, &page->body);
		finish(page, 500, "andiron is healthy.\n");
	} else if (str_is(path, "/metrics")) {
		write_page(self, ANDIRON_STATUS_METRICS, "text/plain; version=0.0.4; charset=utf-8",
			   page);
	} else if (str_is(path, COMPONENTS)) {
		write_page(self, ANDIRON_STATUS_COMPONENTS, "application/json", page);
	} else if (str_is(path, "/targets")) {
		write_page(self, ANDIRON_STATUS_TARGETS, "application/json", page);
	} else if (str_starts(path, STR(COMPONENTS "/"))) {
		write_component(self, str_skip(path, strlen(COMPONENTS "/")), page);
	} else {
		page->status = 404;
		buf_str_append(&page->body,
			       STR("there are / for people, and /metrics, /-/ready, /-/healthy, "
				   "/-/reload, /targets, /flame, /profile and " COMPONENTS "\n"));
	}
}

/* --- Reloading --- */

static void answer_reload(struct server_request *r, int32_t result)
{
	struct server_answer answer = {.status = 400, .type = "text/plain; charset=utf-8"};

	answer.body = STR("not reloaded, the old configuration goes on; the log says why\n");
	if (result == 0) {
		answer.status = 200;
		answer.body = STR("config reloaded\n");
	} else if (result == -EINPROGRESS) {
		answer.status = 202;
		answer.body = STR("not reloaded yet: the new configuration is taken when a value "
				  "is there that it waits for; the log says whose\n");
	} else if (result == -EOPNOTSUPP) {
		answer.status = 501;
		answer.body = STR("nobody reads a configuration here\n");
	} else if (result == -ECANCELED || result == -ENOMEM || result == -EBUSY ||
		   result == -ETIMEDOUT) {
		answer.status = 503;
		answer.retry_s = RETRY_S;
		answer.body = STR("not reloaded now; the configuration is being changed, or the "
				  "agent is stopping: ask again\n");
	}
	server_answer(r, &answer);
}

static void on_reloaded(void *arg, int32_t result)
{
	struct service *self = arg;

	self->reloading = false;
	if (!self->reloader)
		return; /* whoever asked has gone */
	answer_reload(self->reloader, result);
	listener_turn(&self->listener);
}

static void on_over(void *context, struct server_request *r)
{
	struct service *self = context;

	if (self->reloader == r)
		self->reloader = NULL;
	if (self->looking && self->looking->asker == r)
		self->looking->asker = NULL;
}

/* A picture or a form in a page of another's web site asks, with the browser's password if there is
 * one. Browsers say so where they speak to a loopback address or by TLS; whatever else asks sends
 * no such header. */
static bool is_asked_by_a_site(const struct server_request *r)
{
	struct str from = server_request_header(r, "Sec-Fetch-Site");

	return from.n && !str_is(from, "same-origin") && !str_is(from, "none");
}

/* Answered when it is done, or at once if it cannot be. */
static void reload(struct service *self, struct server_request *r)
{
	int32_t rc = -EOPNOTSUPP;

	if (!self->reload) {
		server_answer_text(r, 403,
				   "nothing is reloaded here; write reload = true into the block "
				   "status.http, or send SIGHUP");
		return;
	}
	if (is_asked_by_a_site(r)) {
		server_answer_text(r, 403,
				   "a page of another web site asked for this; ask by curl, or "
				   "type the address into the browser");
		return;
	}
	if (self->reloading)
		rc = -EBUSY;
	else if (ANDIRON_HAS(table(self), andiron_status, reload))
		rc = table(self)->reload(self->status.self, self->listener.context.instance,
					 on_reloaded, self);
	if (rc) {
		answer_reload(r, rc);
		return;
	}
	self->reloading = true;
	self->reloader = r;
}

/* --- The last minutes --- */

static void draw_look(void *arg)
{
	live_look_draw(&((struct look *)arg)->look);
}

/* Whoever looked by a link of the page gets a page, too. `why` is text of ours. */
static void refuse_look(struct server_request *r, unsigned int status, const char *why)
{
	struct buf page = BUF_NULL;

	if (!str_is(server_request_path(r), "/flame")) {
		server_answer_text(r, status, why);
		return;
	}
	buf_printf(&page,
		   "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\">"
		   "<meta name=\"viewport\" content=\"width=device-width\">"
		   "<meta name=\"color-scheme\" content=\"light dark\"><title>andiron</title>"
		   "<p>%s</p><p><a href=\"./\">To the agent's page</a></p></html>\n",
		   why);
	server_answer(r, &(struct server_answer){
				 .status = page.failed ? 500 : status,
				 .type = "text/html; charset=utf-8",
				 .body = buf_str(&page),
				 .retry_s = status == 503 ? RETRY_S : 0,
			 });
	buf_free(&page);
}

static void look_answer(struct server_request *r, const struct live_look *k)
{
	if (k->result == -ENODATA && k->lacks_before)
		refuse_look(r, 404,
			    "nothing is kept of the earlier time: the agent may have begun later, "
			    "and it keeps the last minutes only (keep_profiles of status.http); "
			    "compare with a later time, or wait");
	else if (k->result == -ENODATA)
		refuse_look(r, 404,
			    "nothing was sampled then: does a sampler forward to "
			    "status.http.receiver, and has it sent since? Profiles that others "
			    "have encoded are not kept");
	else if (k->result)
		refuse_look(r, 500, "the profile could not be drawn: out of memory");
	else
		server_answer(r, &(struct server_answer){
					 .status = 200,
					 .type = k->form == LIVE_PPROF ? "application/octet-stream"
								       : "text/html; charset=utf-8",
					 .body = buf_str(&k->out),
				 });
}

static void look_done(void *arg)
{
	struct look *k = arg;
	struct service *self = k->service;

	self->looking = NULL;
	if (k->asker) {
		look_answer(k->asker, &k->look);
		listener_turn(&self->listener);
	}
	live_look_fini(&k->look);
	free(k);
}

/* A time of the query; `absent` if there is none. False: it is no time. */
static bool read_time(struct server_request *r, const char *name, int64_t absent, int64_t *ret)
{
	struct str text = server_request_query(r, name);

	*ret = absent;
	return !text.p || (duration_parse(text, ret) && *ret > 0 && *ret <= LIVE_LONGEST);
}

static void look(struct service *self, struct server_request *r, bool pprof)
{
	const struct abi_context *c = &self->listener.context;
	struct look *k;

	if (self->looking) {
		refuse_look(r, 503, "another profile is being drawn; ask again");
		return;
	}
	k = calloc(1, sizeof(*k));
	if (k && (!read_time(r, "last", 60 * NS_PER_SEC, &k->look.last_ns) ||
		  !read_time(r, "against", 0, &k->look.against_ns))) {
		free(k);
		server_answer_text(r, 400, "last and against are times like 60s or 5m, up to 24h");
		return;
	}
	if (k) {
		k->look.form = pprof ? LIVE_PPROF : k->look.against_ns ? LIVE_COMPARED : LIVE_FLAME;
		k->service = self;
		k->asker = r;
	}
	if (!k || live_look_init(&k->look, &self->kept, clock_real()) ||
	    c->host->work(c->instance, draw_look, look_done, k)) {
		if (k)
			live_look_fini(&k->look);
		free(k);
		server_answer_text(r, 500, "out of memory");
		return;
	}
	self->looking = k;
}

/* A page is answered when its head has been read. */
static void on_request(void *context, struct server_request *r)
{
	struct str path = server_request_path(r);
	struct page page = {405, "text/plain; charset=utf-8", BUF_NULL};

	if (!auth_admits(&((struct service *)context)->auth, r))
		return;
	if (str_is(path, "/-/reload") &&
	    (server_request_is(r, "GET") || server_request_is(r, "POST"))) {
		reload(context, r);
		return;
	}
	if (server_request_is(r, "GET") && (str_is(path, "/flame") || str_is(path, "/profile"))) {
		look(context, r, str_is(path, "/profile"));
		return;
	}
	if (server_request_is(r, "GET") || server_request_is(r, "HEAD"))
		make_page(context, path, &page);
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
	const struct server_events events = {.context = self, .ready = on_request, .over = on_over};

	return listener_init(&self->listener, context, &events, options);
}

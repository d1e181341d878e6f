/* SPDX-License-Identifier: Apache-2.0 */
/* A URL asked again and again. Contract in url.h. */
#include "discovery/url.h"

#include "abi/value.h"
#include "base/clock.h"
#include "client/loop.h"
#include "client/options.h"
#include "discovery/groups.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

struct url {
	struct abi_context context;
	struct client_config client;
	struct client_loop *loop;
	struct sources sources;
	struct str address;
	char seconds[32]; /* the interval, as it is told to the server */
	int64_t refresh_ns;
	uint64_t timer, request;
	bool reading, stopped, reported;
	struct url_counts counts;
};

struct reading {
	struct url *u;
	struct buf text;
	struct target_rows rows;
	int result;
	struct error err;
};

/* Whatever the case of its letters is. */
static bool is_word(struct str s, const char *word)
{
	return s.n == strlen(word) && strncasecmp(s.p, word, s.n) == 0;
}

bool url_type_is_json(struct str type)
{
	struct str rest = type, kind = str_trim(str_cut(&rest, ';'));

	rest = str_trim(rest);
	return is_word(kind, "application/json") &&
	       (rest.n == 0 || is_word(rest, "charset=utf-8") ||
		is_word(rest, "charset=\"utf-8\""));
}

int32_t url_create(const struct andiron_host *host, uint64_t instance,
		   const struct andiron_value *args, void **ret_self, struct andiron_error *ret_err)
{
	struct url *u = calloc(1, sizeof(*u));
	struct error err = ERROR_NULL;
	int r;

	if (!u)
		return -ENOMEM;
	u->context = (struct abi_context){host, instance};
	r = client_config_init(&u->client, args, &err);
	if (r < 0) {
		free(u);
		return abi_error(host, ret_err, &err, r);
	}
	u->refresh_ns = value_int(args, "refresh_interval", 60 * NS_PER_SEC);
	str_print_fraction(u->seconds, sizeof(u->seconds), 9,
			   (double)u->refresh_ns / (double)NS_PER_SEC);
	u->address = arena_str(&u->client.arena, value_str(args, "url", STR("")));
	r = u->address.p ? 0 : -ENOMEM;
	if (r == 0)
		r = sources_init(&u->sources, &u->context);
	if (r < 0) {
		url_free(u);
		return abi_error(host, ret_err, &err, r);
	}
	*ret_self = u;
	return 0;
}

void url_free(void *self)
{
	struct url *u = self;

	if (!u)
		return;
	client_loop_free(u->loop);
	sources_fini(&u->sources);
	client_config_fini(&u->client);
	free(u);
}

static void fail(struct url *u, const char *why)
{
	bool had = sources_count(&u->sources) > 0;

	u->counts.failures++;
	if (!u->reported)
		abi_log(&u->context, ANDIRON_LOG_WARN, "%s; trying again", why);
	u->reported = true;
	abi_health(&u->context, ANDIRON_HEALTH_UNHEALTHY, "%s%s", why,
		   had ? "; the last targets stay" : "");
}

static void on_reading(void *context)
{
	struct reading *r = context;
	struct target_label label = {STR("__meta_url"), r->u->address};

	r->result = groups_from_json(buf_str(&r->text), label, &r->rows, &r->err);
	buf_free(&r->text);
}

static int take(struct url *u, const struct target_rows *rows)
{
	struct source *source = sources_get(&u->sources, "");
	int r = source ? sources_set(&u->sources, source, rows) : -ENOMEM;

	return r < 0 ? r : sources_publish(&u->sources);
}

static void on_read(void *context)
{
	struct reading *r = context;
	struct url *u = r->u;

	u->reading = false;
	if (!u->stopped && r->result == 0)
		r->result = take(u, &r->rows);
	if (u->stopped) {
		;
	} else if (r->result < 0) {
		if (r->err.code)
			error_wrap(&r->err, r->err.code, "the answer of %.*s cannot be used",
				   STR_FMT(str_first(http_host(u->address), 256)));
		fail(u, r->err.code ? r->err.text : "out of memory for the targets");
	} else {
		u->counts.reads++;
		u->reported = false;
		abi_health(&u->context, ANDIRON_HEALTH_HEALTHY, "%zu targets",
			   sources_count(&u->sources));
	}
	target_rows_free(&r->rows);
	free(r);
}

/* Why an answer is none, or NULL. */
static const char *answer_fault(const struct url *u, const struct http_response *r, char *out,
				size_t n)
{
	const struct str address = str_first(http_host(u->address), 256); /* no password of it */

	if (r->status == 0)
		return r->error;
	if (r->status != 200)
		snprintf(out, n, "%.*s answered %d: target groups come with 200", STR_FMT(address),
			 r->status);
	else if (!url_type_is_json(r->content_type))
		snprintf(out, n,
			 "%.*s answered with the content type \"%.*s\": target groups are "
			 "application/json",
			 STR_FMT(address), STR_FMT(str_first(r->content_type, 64)));
	else
		return NULL;
	return out;
}

static void on_answer(void *context, const struct http_response *response)
{
	struct url *u = context;
	char text[512];
	const char *fault = answer_fault(u, response, text, sizeof(text));
	struct reading *r;

	u->request = 0;
	if (fault) {
		fail(u, fault);
		return;
	}
	r = calloc(1, sizeof(*r));
	if (r) {
		*r = (struct reading){.u = u};
		buf_str_append(&r->text, response->body);
	}
	u->reading = r && !r->text.failed &&
		     u->context.host->work(u->context.instance, on_reading, on_read, r) == 0;
	if (u->reading)
		return;
	if (r)
		buf_free(&r->text);
	free(r);
	fail(u, "out of memory for the targets");
}

static void ask(struct url *u, struct error *err)
{
	const struct http_header headers[] = {
		{STR("Accept"), STR("application/json")},
		{STR("X-Prometheus-Refresh-Interval-Seconds"), str_of(u->seconds)},
	};
	const struct http_request request = {
		.method = "GET",
		.url = u->address,
		.headers = headers,
		.n_headers = 2,
		.timeout_ms = u->refresh_ns / NS_PER_MSEC + 1,
		.max_response = GROUPS_MAX_BYTES,
		.done = on_answer,
		.context = u,
	};

	if (u->request || u->reading)
		return;
	if (http_send(client_loop_http(u->loop), &u->client.http, &request, &u->request, err) < 0)
		fail(u, err->code ? err->text : "out of memory for a request");
}

static void on_refresh(void *context)
{
	struct error err = ERROR_NULL;

	ask(context, &err);
}

int32_t url_start(void *self, struct andiron_error *ret_err)
{
	struct url *u = self;
	struct error err = ERROR_NULL;
	int r = client_loop_start(&u->context, &u->loop, &err);

	if (r < 0)
		return abi_error(u->context.host, ret_err, &err, r);
	r = u->context.host->timer_set(u->context.instance, u->refresh_ns, u->refresh_ns,
				       on_refresh, u, &u->timer);
	if (r == 0)
		ask(u, &err);
	return r;
}

void url_stop(void *self)
{
	struct url *u = self;

	u->stopped = true;
	if (u->timer)
		u->context.host->timer_cancel(u->context.instance, u->timer);
	u->timer = 0;
	client_loop_free(u->loop);
	u->loop = NULL;
}

struct url_counts url_counts(const void *self)
{
	const struct url *u = self;
	struct url_counts c = u->counts;

	c.targets = sources_count(&u->sources);
	return c;
}

const struct client_loop *url_loop(const void *self)
{
	return ((const struct url *)self)->loop;
}

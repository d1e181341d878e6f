/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to an engine. Contract in engine.h. */
#include "docker/engine.h"

#include <errno.h>
#include <stdio.h>

int32_t engine_start(struct engine *e, const struct abi_context *context,
		     const struct settings *settings, struct andiron_error *ret_err)
{
	/* A sender reaches no socket of a service. */
	bool by_network = !settings->http.unix_socket.p;
	struct error err = ERROR_NULL;
	int r;

	*e = (struct engine){.context = context, .settings = settings};
	r = by_network ? client_loop_start(context, &e->loop, &err)
		       : client_loop_new(context, &e->loop, &err);
	return r < 0 ? abi_error(context->host, ret_err, &err, r) : 0;
}

void engine_fini(struct engine *e)
{
	client_loop_free(e->loop);
	e->loop = NULL;
}

int engine_ask(const struct engine *e, struct buf *url, struct http_request *request,
	       uint64_t *ret_request, char trouble[ENGINE_TROUBLE])
{
	struct error err = ERROR_NULL;
	int r = -ENOMEM;

	request->method = "GET";
	request->url = buf_str(url);
	if (!url->failed)
		r = http_send(client_loop_http(e->loop), &e->settings->http, request, ret_request,
			      &err);
	buf_free(url);
	if (r < 0)
		snprintf(trouble, ENGINE_TROUBLE, "the Docker engine at %.*s: %s",
			 STR_FMT(e->settings->host), err.code ? err.text : "out of memory");
	return r;
}

void engine_describe(const struct engine *e, const char *what, const struct http_response *response,
		     char trouble[ENGINE_TROUBLE])
{
	const struct str host = e->settings->host;

	if (response->status == 0)
		snprintf(trouble, ENGINE_TROUBLE, "the Docker engine at %.*s cannot be asked: %s%s",
			 STR_FMT(host), response->error,
			 strstr(response->error, strerror(EACCES))
				 ? "; the agent must be in the group of the socket, or own it"
				 : "");
	else
		snprintf(trouble, ENGINE_TROUBLE,
			 "the Docker engine at %.*s answered %d when asked for %s: %.*s",
			 STR_FMT(host), response->status, what,
			 STR_FMT(str_first(str_trim(response->body), 256)));
}

void engine_timer(const struct engine *e, uint64_t *timer, int64_t after_ns, andiron_call_fn fn,
		  void *arg)
{
	const struct abi_context *c = e->context;

	if (!*timer && c->host->timer_set(c->instance, after_ns, 0, fn, arg, timer) < 0)
		c->host->post(c->instance, fn, arg);
}

void engine_timer_cancel(const struct engine *e, uint64_t *timer)
{
	if (*timer)
		e->context->host->timer_cancel(e->context->instance, *timer);
	*timer = 0;
}

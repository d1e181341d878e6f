/* SPDX-License-Identifier: Apache-2.0 */
/* A URL's answer as a value. Contract in remote.h. What the answer says is not looked at: whose
 * argument it becomes knows what it takes, and a value that is refused there changes nothing. */
#include "discovery/remote.h"

#include "abi/value.h"
#include "base/clock.h"
#include "client/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_BYTES ((uint64_t)1 << 20)

struct remote {
	struct abi_context context;
	struct client_config client;
	struct client_poll *poll;
	struct str url;
	bool secret;
};

static int take(void *context, const struct http_response *response, struct error *err)
{
	struct remote *m = context;
	struct str text = str_trim(response->body);
	const struct andiron_value value = {
		.kind = ANDIRON_VALUE_STRING,
		.flags = m->secret ? ANDIRON_VALUE_SECRET : 0,
		.string = {text.p, text.n},
	};

	return client_poll_send(m->poll, &value, err);
}

static void describe(void *context, const struct http_response *response, char *out, size_t n)
{
	const struct remote *m = context;

	if (response->status == 0 || response->result != 0)
		snprintf(out, n, "%s", response->error ? response->error : "no answer");
	else
		snprintf(out, n, "%.*s answered %d: the content comes with 200",
			 STR_FMT(http_host(m->url)), response->status);
}

/* A method is a NUL-terminated copy; all of the request's texts are in the arena. */
static int make(struct remote *m, const struct andiron_value *args, struct error *err)
{
	static const struct andiron_value nothing = {.kind = ANDIRON_VALUE_MAP};
	const struct andiron_value *client = value_get(args, "client");
	const struct andiron_value *headers = value_get(args, "headers");
	struct client_poll_how how = {
		.host = &m->context,
		.export_name = "content",
		.http = &m->client.http,
		.frequency_ns = value_int(args, "poll_frequency", 60 * NS_PER_SEC),
		.timeout_ns = value_int(args, "poll_timeout", 10 * NS_PER_SEC),
		.context = m,
		.take = take,
		.describe = describe,
	};
	int r = client_config_init(&m->client, client ? client : &nothing, err);

	if (r < 0)
		return r;
	m->secret = value_bool(args, "is_secret", false);
	m->url = arena_str(&m->client.arena, value_str(args, "url", STR("")));
	how.request.url = m->url;
	how.request.method = arena_str(&m->client.arena, value_str(args, "method", STR("GET"))).p;
	how.request.body = arena_str(&m->client.arena, value_str(args, "body", STR("")));
	how.request.max_response = MAX_BYTES;
	if (!m->url.p || !how.request.method || !how.request.body.p)
		return -ENOMEM;
	if (headers)
		r = client_headers(&m->client.arena, headers, &how.request.headers,
				   &how.request.n_headers);
	return r < 0 ? r : client_poll_new(&how, &m->poll);
}

int32_t remote_create(const struct andiron_host *host, uint64_t instance,
		      const struct andiron_value *args, void **ret_self,
		      struct andiron_error *ret_err)
{
	struct remote *m = calloc(1, sizeof(*m));
	struct error err = ERROR_NULL;
	int r;

	if (!m)
		return -ENOMEM;
	m->context = (struct abi_context){host, instance};
	r = make(m, args, &err);
	if (r < 0) {
		remote_free(m);
		return abi_error(host, ret_err, &err, r);
	}
	*ret_self = m;
	return 0;
}

void remote_free(void *self)
{
	struct remote *m = self;

	if (!m)
		return;
	client_poll_free(m->poll);
	client_config_fini(&m->client);
	free(m);
}

int32_t remote_start(void *self, struct andiron_error *ret_err)
{
	struct remote *m = self;
	struct error err = ERROR_NULL;
	int r = client_poll_start(m->poll, &err);

	if (r < 0)
		return abi_error(m->context.host, ret_err, &err, r);
	client_poll_ask(m->poll);
	return 0;
}

void remote_stop(void *self)
{
	struct remote *m = self;

	client_poll_stop(m->poll);
}

void remote_metrics(void *self, const struct andiron_metric_sink *sink)
{
	const struct remote *m = self;

	client_poll_metrics(m->poll, sink);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The four calls. Contract in server.h. */
#include "cli/push/server.h"

#include "base/clock.h"
#include "http/grpc.h"
#include "protobuf/wire.h"

#include <errno.h>
#include <stdlib.h>

#define MAX_ANSWER (INT64_C(64) << 20)
#define MODE_MERGE 2
#define REPORT_PPROF 1
#define MS_PER_SEC 1000

static const struct http_header connect_headers[] = {
	{{"Content-Type", 12}, {"application/proto", 17}},
	{{"Connect-Protocol-Version", 24}, {"1", 1}},
};

#define N_HEADERS 2 /* of either protocol */

/* A call under way, and the message of its answer. */
struct call {
	struct push_server *server;
	bool done;
	int result;
	struct buf message;
	struct error *err;
};

/* Connect answers an error as a status and JSON, which is shown as it is, on one line. */
static int connect_result(struct call *c, const struct http_response *r)
{
	char text[300];
	size_t n = 0;

	if (r->status == 200 && str_starts(r->content_type, STR("application/proto")))
		return buf_str_append(&c->message, r->body);
	if (r->status == 0)
		return error_set(c->err, r->sent ? -ECONNRESET : -ECONNREFUSED, "%.300s", r->error);
	for (; n < r->body.n && n + 1 < sizeof(text); n++) {
		unsigned char b = (unsigned char)r->body.p[n];

		text[n] = b < ' ' || b > '~' ? ' ' : (char)b;
	}
	text[n] = '\0';
	if (r->status == 200)
		return error_set(c->err, -EPROTO,
				 "content type \"%.*s\" is not the answer of a Pyroscope server",
				 STR_FMT(str_first(r->content_type, 80)));
	return error_set(c->err, -EREMOTEIO, "the server answered %d: %s", r->status, text);
}

static int grpc_result(struct call *c, const struct http_response *r)
{
	char text[300];
	int code = grpc_status(r, text, sizeof(text));

	if (code == GRPC_OK)
		return buf_str_append(&c->message, grpc_message(r->body));
	if (code > 0)
		return error_set(c->err, -EREMOTEIO, "the server answered %d: %s", code, text);
	return error_set(c->err, r->status == 0 && r->sent ? -ECONNRESET : -EPROTO, "%s", text);
}

static void on_done(void *context, const struct http_response *r)
{
	struct call *c = context;

	c->result = c->server->kind == PUSH_PARCA ? grpc_result(c, r) : connect_result(c, r);
	c->done = true;
}

static int begin(struct call *c, const char *path, struct str body, uint64_t *ret_id)
{
	const struct push_server *s = c->server;
	const struct remote *remote = s->remote;
	bool parca = s->kind == PUSH_PARCA;
	size_t n = N_HEADERS + remote->n_headers;
	struct http_header *headers = calloc(n + 1, sizeof(*headers));
	struct buf url = BUF_NULL;
	struct http_request request = {
		.method = "POST",
		.headers = headers,
		.body = body,
		.timeout_ms = s->timeout_ms,
		.http2 = parca,
		.max_response = MAX_ANSWER,
		.done = on_done,
		.context = c,
	};
	int r = -ENOMEM;

	buf_printf(&url, "%.*s%s", STR_FMT(s->url), path);
	if (headers && !url.failed) {
		memcpy(headers, parca ? grpc_headers : connect_headers,
		       N_HEADERS * sizeof(*headers));
		if (remote->n_headers)
			memcpy(headers + N_HEADERS, remote->headers,
			       remote->n_headers * sizeof(*headers));
		if (s->tenant)
			headers[n++] =
				(struct http_header){STR("X-Scope-OrgID"), str_of(s->tenant)};
		request.n_headers = n;
		request.url = buf_str(&url);
		if (parca)
			memcpy(request.wanted, (const char *[HTTP_WANTED]){GRPC_WANTED},
			       sizeof(request.wanted));
		r = http_send(s->wait.client, &remote->config, &request, ret_id, c->err);
	}
	buf_free(&url);
	free(headers);
	return r;
}

/* One exchange; the answer's message is in c->message. */
static int call(struct call *c, const char *path, const struct buf *body)
{
	uint64_t id = 0;
	int r = body->failed ? -ENOMEM : begin(c, path, buf_str(body), &id);

	if (r < 0)
		return r;
	/* The client ends it by the same time; this is for a loop that cannot turn. */
	if (http_polled_until(&c->server->wait, &c->done, 2 * c->server->timeout_ms))
		return c->result;
	http_cancel(c->server->wait.client, id);
	return error_set(c->err, -ECONNRESET, "the server took too long (--timeout)");
}

/* Parca reads addresses by the mappings, which foreign profiles have, so `normalized` is not said.
 */
int push_server_send(struct push_server *s, const struct push_file *f, const struct label *labels,
		     size_t n_labels, struct error *err)
{
	bool parca = s->kind == PUSH_PARCA;
	struct call c = {.server = s, .err = err};
	struct buf series = BUF_NULL, body = BUF_NULL;
	size_t start = parca ? grpc_begin(&body) : 0;
	int r;

	(parca ? raw_series_put_parca : raw_series_put_pyroscope)(&series, labels, n_labels,
								  buf_str(&f->packed));
	wire_put_bytes(&body, parca ? RAW_SERIES_PARCA : RAW_SERIES_PYROSCOPE, buf_str(&series));
	body.failed |= series.failed;
	if (parca)
		grpc_end(&body, start);
	r = call(&c,
		 parca ? "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw"
		       : "/push.v1.PusherService/Push",
		 &body);
	buf_free(&series);
	buf_free(&body);
	buf_free(&c.message);
	return r;
}

/* SelectMergeProfileRequest{ profile_typeID=1, label_selector=2, start=3, end=4 }; the answer is
 * a profile. */
static int ask_pyroscope(struct call *c, struct str type, struct str selector, int64_t ms)
{
	struct buf body = BUF_NULL;
	int r;

	wire_put_bytes(&body, 1, type);
	wire_put_bytes(&body, 2, selector);
	wire_put_field(&body, 3, (uint64_t)ms);
	wire_put_field(&body, 4, (uint64_t)ms + 1);
	r = call(c, "/querier.v1.QuerierService/SelectMergeProfile", &body);
	buf_free(&body);
	return r;
}

/* Timestamp{ seconds=1, nanos=2 }. */
static void put_time(struct buf *out, uint32_t field, int64_t ms)
{
	struct buf time = BUF_NULL;

	wire_put_field(&time, 1, (uint64_t)(ms / MS_PER_SEC));
	wire_put_field(&time, 2, (uint64_t)(ms % MS_PER_SEC * NS_PER_MSEC));
	wire_put_bytes(out, field, buf_str(&time));
	out->failed |= time.failed;
	buf_free(&time);
}

/* QueryRequest{ mode=1, merge=3{ query=1, start=2, end=3 }, report_type=5 }; in the answer
 * pprof=6. */
static int ask_parca(struct call *c, struct str type, struct str selector, int64_t ms)
{
	struct buf query = BUF_NULL, merge = BUF_NULL, body = BUF_NULL;
	size_t start = grpc_begin(&body);
	int r;

	buf_str_append(&query, type);
	buf_str_append(&query, selector);
	wire_put_bytes(&merge, 1, buf_str(&query));
	put_time(&merge, 2, ms);
	put_time(&merge, 3, ms + 1);
	wire_put_field(&body, 1, MODE_MERGE);
	wire_put_bytes(&body, 3, buf_str(&merge));
	wire_put_field(&body, 5, REPORT_PPROF);
	body.failed |= query.failed | merge.failed;
	grpc_end(&body, start);
	r = call(c, "/parca.query.v1alpha1.QueryService/Query", &body);
	buf_free(&query);
	buf_free(&merge);
	buf_free(&body);
	return r;
}

static struct str field_bytes(struct str message, uint32_t number)
{
	struct wire_field f;

	while (message.n && wire_next(&message, &f))
		if (f.number == number && f.type == WIRE_BYTES)
			return f.bytes;
	return STR_NULL;
}

/* Servers answer "nothing" by a profile without types, or by none at all. */
static int sum(struct str pprof, int64_t *ret, struct error *err)
{
	struct profile *p = NULL;
	uint64_t total = 0;
	int r;

	*ret = 0;
	if (!pprof.n || (pprof.p[0] != 0x1f && !field_bytes(pprof, 1).p))
		return 0;
	r = profile_decode(pprof, &p, err);
	if (r < 0)
		return error_wrap(err, r, "the server's answer");
	for (size_t i = 0; i < p->n_samples; i++)
		total += (uint64_t)p->values[i * p->n_types];
	*ret = (int64_t)total;
	profile_free(p);
	return 0;
}

int push_server_total(struct push_server *s, struct str type, struct str selector, int64_t time_ns,
		      int64_t *ret, struct error *err)
{
	struct call c = {.server = s, .err = err};
	int64_t ms = time_ns / NS_PER_MSEC;
	bool parca = s->kind == PUSH_PARCA;
	int r = (parca ? ask_parca : ask_pyroscope)(&c, type, selector, ms);

	if (r == 0)
		r = sum(parca ? field_bytes(buf_str(&c.message), 6) : buf_str(&c.message), ret,
			err);
	buf_free(&c.message);
	return r;
}

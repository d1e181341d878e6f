/* SPDX-License-Identifier: Apache-2.0 */
/* The four calls. Contract in server.h. */
#include "cli/push/server.h"

#include "base/clock.h"
#include "http/grpc.h"
#include "protobuf/message.h"
#include "protobuf/parca.pb-c.h"
#include "protobuf/pyroscope.pb-c.h"
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

static void put_push(struct str series, struct buf *out)
{
	Pyroscope__PushRequest request = PYROSCOPE__PUSH_REQUEST__INIT;
	ProtobufCBinaryData bytes = message_bytes(series);

	request.n_series = 1;
	request.series = &bytes;
	message_pack(&request, out);
}

/* Parca reads addresses by the mappings, which foreign profiles have: they are not `normalized`. */
static void put_write_raw(struct str series, struct buf *out)
{
	Parca__WriteRawRequest request = PARCA__WRITE_RAW_REQUEST__INIT;
	ProtobufCBinaryData bytes = message_bytes(series);

	request.n_series = 1;
	request.series = &bytes;
	message_pack(&request, out);
}

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
	if (parca)
		put_write_raw(buf_str(&series), &body);
	else
		put_push(buf_str(&series), &body);
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

/* The answer is a profile. */
static int ask_pyroscope(struct call *c, struct str type, struct str selector, int64_t ms)
{
	Pyroscope__SelectMergeProfileRequest request =
		PYROSCOPE__SELECT_MERGE_PROFILE_REQUEST__INIT;
	struct buf body = BUF_NULL;
	int r;

	request.profile_type_id = message_bytes(type);
	request.label_selector = message_bytes(selector);
	request.start = ms;
	request.end = ms + 1;
	message_pack(&request, &body);
	r = call(c, "/querier.v1.QuerierService/SelectMergeProfile", &body);
	buf_free(&body);
	return r;
}

static void set_time(Parca__Timestamp *time, int64_t ms)
{
	parca__timestamp__init(time);
	time->seconds = ms / MS_PER_SEC;
	time->nanos = (int32_t)(ms % MS_PER_SEC * NS_PER_MSEC);
}

/* The answer holds a profile. */
static int ask_parca(struct call *c, struct str type, struct str selector, int64_t ms)
{
	Parca__QueryRequest request = PARCA__QUERY_REQUEST__INIT;
	Parca__MergeProfile merge = PARCA__MERGE_PROFILE__INIT;
	struct buf query = BUF_NULL, body = BUF_NULL;
	size_t start = grpc_begin(&body);
	Parca__Timestamp from, to;
	int r;

	set_time(&from, ms);
	set_time(&to, ms + 1);
	buf_str_append(&query, type);
	buf_str_append(&query, selector);
	merge.query = message_bytes(buf_str(&query));
	merge.start = &from;
	merge.end = &to;
	request.mode = MODE_MERGE;
	request.merge = &merge;
	request.report_type = REPORT_PPROF;
	message_pack(&request, &body);
	body.failed |= query.failed;
	grpc_end(&body, start);
	r = call(c, "/parca.query.v1alpha1.QueryService/Query", &body);
	buf_free(&query);
	buf_free(&body);
	return r;
}

/* Whether a plain profile has a first field, its types. */
static bool names_types(struct str pprof)
{
	struct wire_field f;

	while (pprof.n && wire_next(&pprof, &f))
		if (f.number == 1)
			return true;
	return false;
}

/* Servers answer "nothing" by a profile without types, or by none at all. */
static int sum(struct str pprof, int64_t *ret, struct error *err)
{
	struct profile *p = NULL;
	uint64_t total = 0;
	int r;

	*ret = 0;
	if (!pprof.n || (pprof.p[0] != 0x1f && !names_types(pprof)))
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

static int sum_parca(struct str message, int64_t *ret, struct error *err)
{
	struct arena arena = ARENA_NULL;
	const void *answer = NULL;
	int r = message_unpack(&parca__query_response__descriptor, message, &MESSAGE_ANSWER, &arena,
			       &answer);

	if (r < 0)
		error_errno(err, r, "the server's answer cannot be read");
	else
		r = sum(message_str(((const Parca__QueryResponse *)answer)->pprof), ret, err);
	arena_free(&arena);
	return r;
}

int push_server_total(struct push_server *s, struct str type, struct str selector, int64_t time_ns,
		      int64_t *ret, struct error *err)
{
	struct call c = {.server = s, .err = err};
	int64_t ms = time_ns / NS_PER_MSEC;
	bool parca = s->kind == PUSH_PARCA;
	int r = (parca ? ask_parca : ask_pyroscope)(&c, type, selector, ms);

	if (r == 0)
		r = (parca ? sum_parca : sum)(buf_str(&c.message), ret, err);
	buf_free(&c.message);
	return r;
}

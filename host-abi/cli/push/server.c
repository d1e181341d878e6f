/* SPDX-License-Identifier: Apache-2.0 */
/* The four calls. Contract in server.h. */
#include "cli/push/server.h"

#include "base/clock.h"
#include "http/grpc.h"
#include "protobuf/message.h"
#include "protobuf/parca.pb-c.h"
#include "protobuf/pyroscope.pb-c.h"
#include "protobuf/wire.h"
#include "push-protocols/protocol.h"

#include <errno.h>
#include <stdlib.h>

#define MAX_ANSWER   (INT64_C(64) << 20)
#define MODE_MERGE   2
#define REPORT_PPROF 1
#define MS_PER_SEC   1000

static const struct protocol *protocol_of(enum push_kind kind)
{
	return kind == PUSH_PARCA ? &protocol_parca : &protocol_pyroscope;
}

/* A call under way, and the message of its answer. */
struct call {
	struct push_server *server;
	bool done;
	int result;
	struct buf message;
	struct error *err;
};

static void on_done(void *context, const struct http_response *r)
{
	struct call *c = context;
	bool parca = c->server->kind == PUSH_PARCA;
	struct answer a = protocol_of(c->server->kind)->classify(r);
	struct str text = str_of(a.text);

	c->done = true;
	if (a.action == ANSWER_ACCEPTED) {
		c->result = buf_str_append(&c->message, parca ? grpc_message(r->body) : r->body);
	} else if (r->status == 0) {
		c->result = error_set(c->err, r->sent ? -ECONNRESET : -ECONNREFUSED, "%s", a.text);
	} else {
		text = str_skip(text, str_starts(text, STR("status ")) ? strlen("status ") : 0);
		c->result =
			error_set(c->err, -EREMOTEIO, "the server answered %.*s", STR_FMT(text));
	}
}

static int begin(struct call *c, const char *path, struct str body, uint64_t *ret_id)
{
	const struct push_server *s = c->server;
	const struct protocol *p = protocol_of(s->kind);
	struct http_request request = {
		.method = "POST",
		.url = s->url,
		.path = path,
		.headers = p->headers,
		.n_headers = p->n_headers,
		.more_headers = s->remote->headers,
		.n_more_headers = s->remote->n_headers,
		.body = body,
		.timeout_ms = s->timeout_ms,
		.http2 = p->http2,
		.max_response = MAX_ANSWER,
		.done = on_done,
		.context = c,
	};

	memcpy(request.wanted, p->wanted, sizeof(request.wanted));
	return http_send(s->wait.client, &s->remote->config, &request, ret_id, c->err);
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

int push_server_send(struct push_server *s, const struct push_file *f, const struct label *labels,
		     size_t n_labels, struct error *err)
{
	const struct protocol *p = protocol_of(s->kind);
	struct call c = {.server = s, .err = err};
	struct buf series = BUF_NULL, body = BUF_NULL;
	struct str one;
	int r;

	p->put_series(&series, labels, n_labels, buf_str(&f->packed));
	one = buf_str(&series);
	/* Parca reads addresses by the mappings, which foreign profiles have. */
	if (s->kind == PUSH_PARCA)
		parca_put_write(&body, &one, 1, false);
	else
		p->put_body(&body, &one, 1);
	body.failed |= series.failed;
	r = call(&c, p->path, &body);
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

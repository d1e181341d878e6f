/* SPDX-License-Identifier: Apache-2.0 */
/* Calls: how one comes out of frames of HTTP/2, and its answer becomes frames. */
#include "grpc-server/private.h"

#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

unsigned int grpc_server_code(unsigned int status)
{
	switch (status) {
	case 200:
		return GRPC_OK;
	case 401:
		return GRPC_UNAUTHENTICATED;
	case 404:
	case 405:
	case 415:
		return GRPC_UNIMPLEMENTED;
	case 408:
	case 504:
		return GRPC_DEADLINE_EXCEEDED;
	case 413:
		return GRPC_RESOURCE_EXHAUSTED;
	case 429:
	case 503:
		return GRPC_UNAVAILABLE;
	default:
		return status < 500 ? GRPC_INVALID_ARGUMENT : GRPC_INTERNAL;
	}
}

static nghttp2_nv pair(struct str name, struct str value)
{
	return (nghttp2_nv){.name = (uint8_t *)(uintptr_t)name.p,
			    .value = (uint8_t *)(uintptr_t)value.p,
			    .namelen = name.n,
			    .valuelen = value.n};
}

void call_free(struct call *c)
{
	struct peer *p = c->peer;

	server_request_over(&c->request);
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	if (!p->calls)
		p->since_ns = clock_mono();
	buf_free(&c->answer);
	free(c);
}

static ssize_t read_answer(nghttp2_session *session, int32_t stream, uint8_t *out, size_t n,
			   uint32_t *flags, nghttp2_data_source *source, void *context)
{
	struct call *c = source->ptr;
	nghttp2_nv ok = pair(STR("grpc-status"), STR("0"));

	if (n > c->answer.n - c->sent)
		n = c->answer.n - c->sent;
	memcpy(out, c->answer.p + c->sent, n);
	c->sent += n;
	if (c->sent == c->answer.n) {
		*flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
		if (nghttp2_submit_trailer(session, stream, &ok, 1) != 0)
			return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	}
	return (ssize_t)n;
}

static int answer_message(struct call *c, struct str message)
{
	const nghttp2_data_provider provider = {.source.ptr = c, .read_callback = read_answer};
	const nghttp2_nv head[] = {
		pair(STR(":status"), STR("200")),
		pair(STR("content-type"), STR("application/grpc")),
	};
	size_t start = grpc_begin(&c->answer);

	buf_str_append(&c->answer, message);
	grpc_end(&c->answer, start);
	if (c->answer.failed)
		return -ENOMEM;
	return nghttp2_submit_response(c->peer->session, c->stream, head,
				       sizeof(head) / sizeof(head[0]), &provider);
}

/* Head and trailers in one. */
static int answer_status(struct call *c, unsigned int status, struct str why)
{
	struct buf text = BUF_NULL;
	char code[4];
	int rc = -ENOMEM;

	snprintf(code, sizeof(code), "%u", grpc_server_code(status) % 100);
	if (str_ends(why, STR("\n")))
		why.n--;
	buf_percent_append(&text, why, " !\"#$&'()*+,/:;<=>?@[\\]^`{|}");
	if (!text.failed) {
		const nghttp2_nv head[] = {
			pair(STR(":status"), c->is_grpc ? STR("200") : STR("415")),
			pair(STR("content-type"), STR("application/grpc")),
			pair(STR("grpc-status"), str_of(code)),
			pair(STR("grpc-message"), buf_str(&text)),
			pair(STR("grpc-accept-encoding"), STR("identity,gzip")),
		};

		rc = nghttp2_submit_response(c->peer->session, c->stream, head,
					     sizeof(head) / sizeof(head[0]), NULL);
	}
	buf_free(&text);
	return rc;
}

void call_answer(struct server_request *r, const struct server_answer *answer)
{
	struct call *c = call_of(r);
	int rc = answer->status == 200 ? answer_message(c, answer->body)
				       : answer_status(c, answer->status, answer->body);

	c->since_ns = clock_mono();
	if (rc)
		nghttp2_submit_rst_stream(c->peer->session, NGHTTP2_FLAG_NONE, c->stream,
					  NGHTTP2_INTERNAL_ERROR);
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct peer *p = context;
	struct call *c;

	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	server_request_init(&c->request, &p->server->server, c->method, STR_NULL);
	c->peer = p;
	c->stream = frame->hd.stream_id;
	c->since_ns = clock_mono();
	c->next = p->calls;
	c->link = &p->calls;
	if (c->next)
		c->next->link = &c->next;
	p->calls = c;
	nghttp2_session_set_stream_user_data(session, c->stream, c);
	return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t n_name, const uint8_t *value, size_t n_value, uint8_t flags,
		     void *context)
{
	struct call *c = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	struct str key = {(const char *)name, n_name}, text = {(const char *)value, n_value};

	if (!c)
		return 0;
	c->head += n_name + n_value;
	if (c->head > c->request.server->limits.memory)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	if (c->request.path.p) /* of the trailers, or what was said twice */
		return 0;
	if (str_is(key, ":method")) {
		snprintf(c->method, sizeof(c->method), "%.*s", STR_FMT(text));
	} else if (str_is(key, ":path")) {
		snprintf(c->path, sizeof(c->path), "%.*s",
			 text.n < sizeof(c->path) ? (int)text.n : 0, text.p);
	} else if (str_is(key, "content-type")) {
		c->is_grpc = str_starts(text, STR("application/grpc")) &&
			     !str_starts(text, STR("application/grpc-web"));
	} else if (str_is(key, "grpc-encoding")) {
		c->foreign_encoding = !str_is(text, "gzip") && !str_is(text, "identity");
	}
	return 0;
}

static void begin(struct call *c)
{
	c->request.path = str_of(c->path);
	if (!c->is_grpc || strcmp(c->method, "POST") != 0)
		server_answer_text(&c->request, 415, "gRPC is spoken here, and nothing else");
	else
		server_request_begin(&c->request);
}

/* The message is there, one in its frame. */
static void finish(struct call *c)
{
	struct server_request *r = &c->request;

	c->whole = true;
	c->since_ns = clock_mono();
	if (r->status)
		return;
	if (c->n_frame < GRPC_FRAME_BYTES || grpc_frame_size(c->frame) != r->body.n ||
	    (uint8_t)c->frame[0] > 1)
		server_answer_text(r, 400, "the call is not one whole message of gRPC");
	else if (c->frame[0] && c->foreign_encoding)
		server_answer_text(r, 415, "the only compression that is taken is gzip");
	else
		server_request_whole(r);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	struct peer *p = context;
	struct call *c;

	p->greeted = true;
	if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
		return 0;
	c = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	if (!c)
		return 0;
	if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		begin(c);
	if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
		finish(c);
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream, const uint8_t *data,
		   size_t n, void *context)
{
	struct call *c = nghttp2_session_get_stream_user_data(session, stream);

	if (!c)
		return 0;
	while (n && c->n_frame < GRPC_FRAME_BYTES) {
		c->frame[c->n_frame++] = (char)*data++;
		n--;
		if (c->n_frame == GRPC_FRAME_BYTES)
			server_request_expect(&c->request, grpc_frame_size(c->frame));
	}
	if (n)
		server_request_keep(&c->request, data, n);
	return 0;
}

/* An answer before the end of its call: the rest is not to be sent. */
static int on_sent(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
	const struct call *c;

	if (frame->hd.type != NGHTTP2_HEADERS || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
		return 0;
	c = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	if (c && !c->whole)
		nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
					  NGHTTP2_NO_ERROR);
	return 0;
}

static int on_close(nghttp2_session *session, int32_t stream, uint32_t code, void *context)
{
	struct call *c = nghttp2_session_get_stream_user_data(session, stream);

	if (c)
		call_free(c);
	return 0;
}

int call_callbacks(nghttp2_session_callbacks **ret)
{
	if (nghttp2_session_callbacks_new(ret) != 0)
		return -ENOMEM;
	nghttp2_session_callbacks_set_on_begin_headers_callback(*ret, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(*ret, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(*ret, on_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(*ret, on_data);
	nghttp2_session_callbacks_set_on_frame_send_callback(*ret, on_sent);
	nghttp2_session_callbacks_set_on_stream_close_callback(*ret, on_close);
	return 0;
}

struct str call_header(const struct server_request *r, const char *name)
{
	const struct call *c = call_of(r);

	return c->frame[0] && strcmp(name, "Content-Encoding") == 0 ? STR("gzip") : STR_NULL;
}

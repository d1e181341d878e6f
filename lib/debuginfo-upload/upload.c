/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An upload's steps. Each is a call whose answer leads to the next one or to the end; a
 * step is a row of the table, so that what is sent stands beside what its answer means.
 * Contract in upload.h.
 */
#include "debuginfo-upload/upload.h"

#include "base/check.h"
#include "http/grpc.h"
#include "protobuf/wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define SERVICE "/parca.debuginfo.v1alpha1.DebuginfoService/"
#define CHUNK_BYTES (UINT64_C(1) << 20)
#define STALL_MS 60000
#define MAX_RESUMED 3 /* sendings under one id before a new one is asked for */
#define STRATEGY_GRPC 1
#define STRATEGY_SIGNED_URL 2

struct step {
	const char *method;
	void (*put)(const struct upload *u, struct buf *out);
	void (*answered)(struct upload *u, struct str message);
};

static void go(struct upload *u, const struct step *step);

static void end(struct upload *u, enum upload_outcome outcome, const char *text)
{
	char copy[400];

	/* The text can lie in what `done` frees. */
	snprintf(copy, sizeof(copy), "%s", text);
	u->step = NULL;
	u->done(u->context, outcome, copy);
}

static void forget_id(struct upload *u)
{
	u->id[0] = '\0';
	u->resumed = 0;
	u->arrived = false;
	free((void *)(uintptr_t)u->url.p);
	u->url = STR_NULL;
}

static void put_should(const struct upload *u, struct buf *b)
{
	wire_put_bytes(b, 1, u->file->build_id);
	wire_put_bytes(b, 2, u->file->hash);
	wire_put_field(b, 3, u->server->force);
	wire_put_field(b, 5, u->file->id_type);
}

static void put_initiate(const struct upload *u, struct buf *b)
{
	wire_put_bytes(b, 1, u->file->build_id);
	wire_put_field(b, 2, u->file->image->size);
	wire_put_bytes(b, 3, u->file->hash);
	wire_put_field(b, 4, u->server->force);
	wire_put_field(b, 6, u->file->id_type);
}

/* UploadInfo and MarkUploadFinishedRequest begin alike. */
static void put_ids(const struct upload *u, struct buf *b)
{
	wire_put_bytes(b, 1, u->file->build_id);
	wire_put_bytes(b, 2, str_of(u->id));
}

static void should(struct upload *u, struct str message);
static void initiated(struct upload *u, struct str message);
static void uploaded(struct upload *u, struct str message);
static void finished(struct upload *u, struct str message);

static const struct step ask = {SERVICE "ShouldInitiateUpload", put_should, should};
static const struct step initiate = {SERVICE "InitiateUpload", put_initiate, initiated};
static const struct step stream = {SERVICE "Upload", NULL, uploaded};
static const struct step put = {NULL, NULL, uploaded};
static const struct step finish = {SERVICE "MarkUploadFinished", put_ids, finished};

/* The first field of that number; *value or *bytes as its type is. */
static bool field(struct str message, uint32_t number, struct wire_field *ret)
{
	while (message.n && wire_next(&message, ret))
		if (ret->number == number)
			return true;
	*ret = (struct wire_field){0};
	return false;
}

static void should(struct upload *u, struct str message)
{
	struct wire_field wanted, reason;
	char text[300];

	field(message, 1, &wanted);
	field(message, 2, &reason);
	if (wanted.value) {
		go(u, &initiate);
		return;
	}
	snprintf(text, sizeof(text), "%.*s", STR_FMT(str_first(reason.bytes, 280)));
	end(u,
	    str_search(reason.bytes, STR("in-progress")) < reason.bytes.n ? UPLOAD_BUSY
									  : UPLOAD_UNWANTED,
	    text[0] ? text : "the server does not want it");
}

static void initiated(struct upload *u, struct str message)
{
	struct wire_field how, id, strategy, url;

	field(message, 1, &how);
	field(how.bytes, 2, &id);
	field(how.bytes, 3, &strategy);
	field(how.bytes, 4, &url);
	if (!id.bytes.n || id.bytes.n >= sizeof(u->id) || memchr(id.bytes.p, '\0', id.bytes.n)) {
		end(u, UPLOAD_REFUSED, "the server gave no id for the upload");
		return;
	}
	forget_id(u);
	snprintf(u->id, sizeof(u->id), "%.*s", STR_FMT(id.bytes));
	if (strategy.value == STRATEGY_SIGNED_URL) {
		u->url = (struct str){str_dup(url.bytes), url.bytes.n};
		if (u->url.p) {
			go(u, &put);
			return;
		}
		forget_id(u); /* without its URL it is of no use */
		end(u, UPLOAD_LOST, "memory is short");
	} else if (strategy.value == STRATEGY_GRPC) {
		go(u, &stream);
	} else {
		end(u, UPLOAD_REFUSED, "the server wants the file in a way that is not known here");
	}
}

static void uploaded(struct upload *u, struct str message)
{
	u->arrived = true;
	go(u, &finish);
}

static void finished(struct upload *u, struct str message)
{
	forget_id(u);
	end(u, UPLOAD_DONE, "uploaded");
}

/* What a status other than "ok" leads to. An id that is not known any more, or that is
 * another's by now, is asked for again. */
static void failed(struct upload *u, int code, const char *text)
{
	bool begun = u->step == &stream || u->step == &put || u->step == &finish;

	if (begun && (code == GRPC_INVALID_ARGUMENT || code == GRPC_FAILED_PRECONDITION)) {
		forget_id(u);
		end(u, UPLOAD_BUSY, text);
		return;
	}
	switch (code) {
	case GRPC_ALREADY_EXISTS:
		end(u, UPLOAD_UNWANTED, text);
		break;
	case GRPC_FAILED_PRECONDITION:
		end(u, UPLOAD_BUSY, text);
		break;
	case GRPC_INVALID_ARGUMENT:
	case GRPC_PERMISSION_DENIED:
	case GRPC_UNIMPLEMENTED:
	case GRPC_UNAUTHENTICATED:
		end(u, UPLOAD_REFUSED, text);
		break;
	default:
		end(u, UPLOAD_LOST, text);
	}
}

/* Whether the status is one that will not change by itself. */
static bool is_permanent(const struct http_response *r)
{
	if (r->status == 200)
		return !str_starts(r->content_type, STR("application/grpc"));
	return r->status >= 300 && r->status < 500 && r->status != 408 && r->status != 429;
}

static void on_done(void *context, const struct http_response *r)
{
	struct upload *u = context;
	const struct step *step = u->step;
	char text[400];
	int code;

	check(step);
	u->request = 0;
	if (step == &put) {
		if (r->status >= 200 && r->status <= 299) {
			step->answered(u, STR_NULL);
			return;
		}
		if (r->status)
			snprintf(text, sizeof(text), "the storage behind the server answered %d",
				 r->status);
		else
			snprintf(text, sizeof(text), "the storage behind the server: %.200s",
				 r->error);
		/* A signed URL has its time. What broke down behind one may take the file under it yet. */
		if (is_permanent(r))
			forget_id(u);
		end(u, UPLOAD_LOST, text);
		return;
	}
	code = grpc_status(r, text, sizeof(text));
	if (code == GRPC_OK)
		step->answered(u, grpc_message(r->body));
	else if (code > 0)
		failed(u, code, text);
	else
		end(u, is_permanent(r) ? UPLOAD_REFUSED : UPLOAD_LOST, text);
}

/* The next chunk's head: its frame, and the field that it is in. */
static bool begin_chunk(struct upload *u)
{
	uint64_t left = u->file->image->size - u->sent;
	uint64_t n = left < CHUNK_BYTES ? left : CHUNK_BYTES;
	size_t start;

	buf_clear(&u->head);
	u->head_used = 0;
	start = grpc_begin(&u->head);
	wire_put_head(&u->head, 2, (size_t)n);
	grpc_end(&u->head, start);
	if (!u->head.failed) /* the bytes of the file belong to the message too */
		grpc_frame(u->head.p, u->head.n - start + (size_t)n);
	u->chunk_left = n;
	elf_image_ahead(u->file->image, u->sent + n, CHUNK_BYTES);
	return !u->head.failed;
}

static int read_file(struct upload *u, char *to, size_t n)
{
	int r = elf_image_read(u->file->image, u->sent, to, n);

	if (r == 0) {
		u->sent += n;
		u->sent_in_all += n;
	}
	return r;
}

static int64_t on_read_stream(void *context, char *to, size_t n)
{
	struct upload *u = context;
	size_t used = 0;

	while (used < n) {
		size_t head = u->head.n - u->head_used, part = n - used;

		if (head) {
			part = head < part ? head : part;
			memcpy(to + used, u->head.p + u->head_used, part);
			u->head_used += part;
		} else if (u->chunk_left) {
			int r;

			part = u->chunk_left < part ? (size_t)u->chunk_left : part;
			r = read_file(u, to + used, part);
			if (r < 0)
				return r;
			u->chunk_left -= part;
		} else if (u->sent == u->file->image->size) {
			break;
		} else {
			if (!begin_chunk(u))
				return -ENOMEM;
			continue;
		}
		used += part;
	}
	return (int64_t)used;
}

static int64_t on_read_put(void *context, char *to, size_t n)
{
	struct upload *u = context;
	int r = read_file(u, to, n);

	elf_image_ahead(u->file->image, u->sent, CHUNK_BYTES);
	return r < 0 ? r : (int64_t)n;
}

/* The stream: a frame with the ids, then the chunks. */
static int prepare_stream(struct upload *u, struct http_request *request)
{
	uint64_t size = u->file->image->size, full = size / CHUNK_BYTES, rest = size % CHUNK_BYTES;
	struct buf ids = BUF_NULL;
	size_t start;

	put_ids(u, &ids);
	buf_clear(&u->head);
	start = grpc_begin(&u->head);
	wire_put_bytes(&u->head, 1, buf_str(&ids));
	grpc_end(&u->head, start);
	u->head.failed |= ids.failed;
	buf_free(&ids);
	u->head_used = 0;
	u->chunk_left = 0;
	request->read = on_read_stream;
	request->read_bytes = u->head.n + full * (GRPC_FRAME_BYTES + wire_size(CHUNK_BYTES)) +
			      (rest ? GRPC_FRAME_BYTES + wire_size(rest) : 0);
	return u->head.failed ? -ENOMEM : 0;
}

/* Whoever signed a URL knows nothing of our secrets, and whoever it leads to shall not. */
static struct http_config without_secrets(const struct http_config *from)
{
	return (struct http_config){
		.proxy_url = from->proxy_url,
		.no_proxy = from->no_proxy,
		.ca_pem = from->ca_pem,
		.ca_file = from->ca_file,
		.min_version = from->min_version,
		.insecure_skip_verify = from->insecure_skip_verify,
		.proxy_from_environment = from->proxy_from_environment,
		.proxy_headers = from->proxy_headers,
		.n_proxy_headers = from->n_proxy_headers,
	};
}

static int send_put(struct upload *u, struct http_request *request, struct error *err)
{
	/* Where one is signed, it is with this header as it is: without it. curl would name one. */
	static const struct http_header no_type = {STR("Content-Type"), STR_NULL};
	struct http_config config = without_secrets(u->server->config);

	request->headers = &no_type;
	request->n_headers = 1;
	request->method = "PUT";
	request->url = u->url;
	request->read = on_read_put;
	request->read_bytes = u->file->image->size;
	return http_send(u->http, &config, request, &u->request, err);
}

static int send_call(struct upload *u, const struct step *step, struct http_request *request,
		     struct error *err)
{
	const struct upload_server *s = u->server;
	size_t n = GRPC_N_HEADERS + s->n_headers;
	struct http_header *headers = calloc(n, sizeof(*headers));
	struct buf body = BUF_NULL, url = BUF_NULL;
	int r = 0;

	buf_printf(&url, "%.*s%s", STR_FMT(s->url), step->method);
	if (step->put) {
		size_t start = grpc_begin(&body);

		step->put(u, &body);
		grpc_end(&body, start);
	} else {
		r = prepare_stream(u, request);
	}
	if (!headers || url.failed || body.failed)
		r = -ENOMEM;
	if (r == 0) {
		memcpy(headers, grpc_headers, sizeof(grpc_headers));
		if (s->n_headers)
			memcpy(headers + GRPC_N_HEADERS, s->headers,
			       s->n_headers * sizeof(*headers));
		request->url = buf_str(&url);
		request->headers = headers;
		request->n_headers = n;
		request->body = buf_str(&body);
		request->http2 = true;
		r = http_send(u->http, s->config, request, &u->request, err);
	}
	buf_free(&url);
	buf_free(&body);
	free(headers);
	return r;
}

static int send_step(struct upload *u, const struct step *step, struct error *err)
{
	bool sends = step == &stream || step == &put;
	struct http_request request = {
		.method = "POST",
		.timeout_ms = sends ? u->server->send_ms : u->server->call_ms,
		.connect_timeout_ms = u->server->call_ms,
		.stall_ms = sends ? STALL_MS : 0,
		.max_send = sends ? u->server->bytes_per_second : 0,
		.wanted = {GRPC_WANTED},
		.done = on_done,
		.context = u,
	};

	u->step = step;
	if (sends) {
		u->resumed++;
		u->sent = 0;
		elf_image_ahead(u->file->image, 0, CHUNK_BYTES);
	}
	return step == &put ? send_put(u, &request, err) : send_call(u, step, &request, err);
}

static void go(struct upload *u, const struct step *step)
{
	struct error err = ERROR_NULL;

	if (send_step(u, step, &err) < 0)
		end(u, UPLOAD_LOST, err.code ? err.text : "memory is short");
}

int upload_run(struct upload *u, struct error *err)
{
	int r;

	check(!u->step && u->done && u->file->image->size > 0);
	if (u->resumed >= MAX_RESUMED && !u->arrived)
		forget_id(u);
	r = send_step(u, !u->id[0] ? &ask : u->arrived ? &finish : u->url.p ? &put : &stream, err);
	if (r < 0)
		u->step = NULL;
	return r;
}

void upload_cancel(struct upload *u)
{
	if (u->request)
		http_cancel(u->http, u->request);
	u->request = 0;
	u->step = NULL;
}

void upload_fini(struct upload *u)
{
	upload_cancel(u);
	forget_id(u);
	buf_free(&u->head);
}

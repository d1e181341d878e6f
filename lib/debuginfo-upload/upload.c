/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of an upload; see upload.h. Each step is a call. Its answer leads to the next step or
 * to the end. */
#include "debuginfo-upload/upload.h"

#include "base/check.h"
#include "http/grpc.h"
#include "protobuf/message.h"
#include "protobuf/parca.pb-c.h"
#include "protobuf/wire.h"
#include "push-protocols/answer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define SERVICE             "/parca.debuginfo.v1alpha1.DebuginfoService/"
#define CHUNK_BYTES         (UINT64_C(1) << 20)
#define STALL_MS            60000
#define MAX_RESUMED         3 /* sendings under one id before a new one is asked for */
#define STRATEGY_GRPC       1
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
	check(!u->request);
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
	Parca__ShouldInitiateUploadRequest request = PARCA__SHOULD_INITIATE_UPLOAD_REQUEST__INIT;

	request.build_id = message_bytes(u->file->build_id);
	request.hash = message_bytes(u->file->hash);
	request.force = u->server->force;
	message_pack(&request, b);
}

static void put_initiate(const struct upload *u, struct buf *b)
{
	Parca__InitiateUploadRequest request = PARCA__INITIATE_UPLOAD_REQUEST__INIT;

	request.build_id = message_bytes(u->file->build_id);
	request.size = (int64_t)u->file->image->size;
	request.hash = message_bytes(u->file->hash);
	request.force = u->server->force;
	message_pack(&request, b);
}

static void put_finished(const struct upload *u, struct buf *b)
{
	Parca__MarkUploadFinishedRequest request = PARCA__MARK_UPLOAD_FINISHED_REQUEST__INIT;

	request.build_id = message_bytes(u->file->build_id);
	request.upload_id = message_bytes(str_of(u->id));
	message_pack(&request, b);
}

static void should(struct upload *u, struct str message);
static void initiated(struct upload *u, struct str message);
static void uploaded(struct upload *u, struct str message);
static void finished(struct upload *u, struct str message);

static const struct step ask = {SERVICE "ShouldInitiateUpload", put_should, should};
static const struct step initiate = {SERVICE "InitiateUpload", put_initiate, initiated};
static const struct step stream = {SERVICE "Upload", NULL, uploaded};
static const struct step put = {NULL, NULL, uploaded};
static const struct step finish = {SERVICE "MarkUploadFinished", put_finished, finished};

static void should(struct upload *u, struct str message)
{
	struct arena arena = ARENA_NULL;
	const void *unpacked = NULL;
	const Parca__ShouldInitiateUploadResponse *answer;
	struct str reason;
	char text[300];
	bool requested, busy;

	if (message_unpack(&parca__should_initiate_upload_response__descriptor, message,
			   &MESSAGE_ANSWER, &arena, &unpacked) < 0) {
		arena_free(&arena);
		end(u, UPLOAD_LOST, "the server's answer cannot be read");
		return;
	}
	answer = unpacked;
	requested = answer->should_initiate_upload != 0;
	reason = message_str(answer->reason);
	busy = str_search(reason, STR("in-progress")) < reason.n;
	snprintf(text, sizeof(text), "%.*s", STR_FMT(str_first(reason, 280)));
	arena_free(&arena);
	if (requested)
		go(u, &initiate);
	else
		end(u, busy ? UPLOAD_BUSY : UPLOAD_UNWANTED,
		    text[0] ? text : "the server does not want it");
}

/* Notes where the file is to go; the step that sends it there, or NULL and why not. */
static const struct step *follow(struct upload *u, const Parca__InitiateUploadResponse *answer,
				 const char **why)
{
	const Parca__UploadInstructions *how = answer->upload_instructions;
	struct str id = how ? message_str(how->upload_id) : STR_NULL;
	struct str url = how ? message_str(how->signed_url) : STR_NULL;

	*why = "the server gave no id for the upload";
	if (!id.n || id.n >= sizeof(u->id) || memchr(id.p, '\0', id.n))
		return NULL;
	forget_id(u);
	snprintf(u->id, sizeof(u->id), "%.*s", STR_FMT(id));
	*why = "the server wants the file in a way that is not known here";
	if (how->upload_strategy == STRATEGY_GRPC)
		return &stream;
	if (how->upload_strategy != STRATEGY_SIGNED_URL)
		return NULL;
	u->url = (struct str){str_dup(url), url.n};
	if (u->url.p)
		return &put;
	forget_id(u); /* without its URL it is of no use */
	*why = NULL;
	return NULL;
}

static void initiated(struct upload *u, struct str message)
{
	const char *why = "the server's answer cannot be read";
	struct arena arena = ARENA_NULL;
	const struct step *next = NULL;
	const void *unpacked = NULL;
	int r = message_unpack(&parca__initiate_upload_response__descriptor, message,
			       &MESSAGE_ANSWER, &arena, &unpacked);

	if (r == 0)
		next = follow(u, unpacked, &why);
	else if (r == -ENOMEM)
		why = NULL;
	arena_free(&arena);
	if (next)
		go(u, next);
	else
		end(u, why ? UPLOAD_REFUSED : UPLOAD_LOST, why ? why : "memory is short");
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

/* What a status other than "ok" leads to. An id that is not known any more, or that is another's by
 * now, is asked for again. */
static void failed(struct upload *u, int code, const struct answer *a)
{
	bool begun = u->step == &stream || u->step == &put || u->step == &finish;
	bool gone = code == GRPC_FAILED_PRECONDITION || (begun && code == GRPC_INVALID_ARGUMENT);

	if (begun && gone)
		forget_id(u);
	if (gone)
		end(u, UPLOAD_BUSY, a->text);
	else if (code == GRPC_ALREADY_EXISTS)
		end(u, UPLOAD_UNWANTED, a->text);
	else
		end(u,
		    a->action == ANSWER_REFUSED || a->action == ANSWER_ISOLATE ? UPLOAD_REFUSED
									       : UPLOAD_LOST,
		    a->text);
}

static void stored(struct upload *u, const struct http_response *r)
{
	enum answer_action action = answer_find(ANSWERS_PROXY, r->status, STR_NULL);
	char text[400];

	if (r->status >= 200 && r->status <= 299) {
		uploaded(u, STR_NULL);
		return;
	}
	if (r->status)
		snprintf(text, sizeof(text), "the storage behind the server answered %d",
			 r->status);
	else
		snprintf(text, sizeof(text), "the storage behind the server: %.200s", r->error);
	/* A signed URL has its time. What broke down behind one may take the file under it yet. */
	if (action == ANSWER_REFUSED || action == ANSWER_ISOLATE)
		forget_id(u);
	end(u, UPLOAD_LOST, text);
}

static void on_done(void *context, const struct http_response *r)
{
	struct upload *u = context;
	const struct step *step = u->step;
	struct answer a;
	char text[400];
	int code;

	check(step);
	u->request = 0;
	if (step == &put) {
		stored(u, r);
		return;
	}
	code = grpc_status(r, text, sizeof(text));
	a = answer_grpc(r, ANSWERS_UPLOAD);
	if (code >= 0)
		snprintf(a.text, sizeof(a.text), "%.300s", text); /* the server's words alone */
	if (code == GRPC_OK)
		step->answered(u, grpc_message(r->body));
	else
		failed(u, code, &a);
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
		check(u->sent + n <= u->file->image->size);
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
	Parca__UploadRequest first = PARCA__UPLOAD_REQUEST__INIT;
	Parca__UploadInfo info = PARCA__UPLOAD_INFO__INIT;
	size_t start;

	info.build_id = message_bytes(u->file->build_id);
	info.upload_id = message_bytes(str_of(u->id));
	first.info = &info;
	buf_clear(&u->head);
	start = grpc_begin(&u->head);
	message_pack(&first, &u->head);
	grpc_end(&u->head, start);
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
	struct buf body = BUF_NULL;
	int r = 0;

	if (step->put) {
		size_t start = grpc_begin(&body);

		step->put(u, &body);
		grpc_end(&body, start);
		r = body.failed ? -ENOMEM : 0;
	} else {
		r = prepare_stream(u, request);
	}
	request->url = s->url;
	request->path = step->method;
	request->headers = grpc_headers;
	request->n_headers = GRPC_N_HEADERS;
	request->more_headers = s->headers;
	request->n_more_headers = s->n_headers;
	request->body = buf_str(&body);
	request->http2 = true;
	if (r == 0)
		r = http_send(u->http, s->config, request, &u->request, err);
	buf_free(&body);
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

	check(!u->request);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* The process that makes requests. Contract in sender.h.
 *
 * A request's body that is made while it is sent is asked for piece by piece, and waited for: the
 * other end answers at once, and libcurl wants it now. What else comes meanwhile is set aside.
 * Answers wait here until the other end takes them, so that nobody's memory grows; a stream that
 * is read slowly is then received slowly. The last piece of one waits until the turn's end, to go
 * with the end of the answer, which mostly comes at once: thousands of small answers then wake the
 * other end once each. */
#include "http/sender/sender.h"

#include "base/check.h"
#include "base/vec.h"
#include "http/polled.h"
#include "http/sender/channel.h"
#include "http/sender/numbered.h"
#include "http/sender/wire.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

struct job {
	struct numbered number; /* first; as the other end calls it */
	struct server *server;
	uint64_t http; /* as the client here does */
	bool cancelled;
	struct wire_request wire;
};

struct aside {
	uint32_t type;
	uint64_t id;
	struct buf payload;
};

struct server {
	struct channel channel;
	struct http_polled loop;
	struct numbered_table jobs;
	struct job *receiving; /* whose body is the next message */
	VEC(struct aside) aside;
	uint64_t held_of; /* id of the request whose piece is held; 0: none is */
	struct buf held;  /* its length and the piece */
	int failure;      /* of the socket */
};

/* Waits until all that was put has gone. */
static void put_now(struct server *s, uint32_t type, uint64_t id, struct str payload)
{
	int r = s->failure ? s->failure : channel_put(&s->channel, type, id, payload);

	while (r == 0 && channel_waits(&s->channel)) {
		struct pollfd full = {.fd = s->channel.fd, .events = POLLOUT};

		poll(&full, 1, -1);
		r = channel_flush(&s->channel);
	}
	s->failure = r;
}

static void release_held(struct server *s)
{
	uint64_t id = s->held_of;

	s->held_of = 0;
	if (id)
		put_now(s, WIRE_DATA, id, str_skip(buf_str(&s->held), sizeof(uint64_t)));
}

static void put(struct server *s, uint32_t type, uint64_t id, struct str payload)
{
	release_held(s);
	put_now(s, type, id, payload);
}

static void hold(struct server *s, uint64_t id, struct str piece)
{
	uint64_t n = piece.n;

	release_held(s);
	buf_clear(&s->held);
	buf_append(&s->held, &n, sizeof(n));
	if (buf_str_append(&s->held, piece) == 0)
		s->held_of = id;
	else
		s->failure = -ENOMEM;
}

static void put_number(struct server *s, uint32_t type, uint64_t id, uint64_t n)
{
	put(s, type, id, wire_number(&n));
}

static struct job *find(struct server *s, uint64_t id)
{
	return (struct job *)numbered_find(&s->jobs, id);
}

static void job_free(struct job *j)
{
	numbered_remove(&j->server->jobs, &j->number);
	wire_request_fini(&j->wire);
	free(j);
}

/* --- What libcurl says --- */

static void on_left(void *context)
{
	struct job *j = context;

	put(j->server, WIRE_LEFT, j->number.id, STR_NULL);
}

static void on_begun(void *context)
{
	struct job *j = context;

	put(j->server, WIRE_BEGUN, j->number.id, STR_NULL);
}

static bool on_data(void *context, struct str piece)
{
	struct job *j = context;

	while (piece.n) {
		struct str part = str_first(piece, CHANNEL_PIECE);

		hold(j->server, j->number.id, part);
		piece = str_skip(piece, part.n);
	}
	return !j->server->failure && !j->cancelled;
}

static void on_done(void *context, const struct http_response *answer)
{
	struct job *j = context;
	struct server *s = j->server;
	struct buf b = BUF_NULL;
	struct str rest = answer->body;
	bool with_piece;

	while (rest.n && !j->cancelled) {
		struct str part = str_first(rest, CHANNEL_PIECE);

		put(s, WIRE_COLLECTED, j->number.id, part);
		rest = str_skip(rest, part.n);
	}
	with_piece = s->held_of == j->number.id;
	if (with_piece) {
		buf_str_append(&b, buf_str(&s->held));
		s->held_of = 0;
	}
	wire_put_answer(&b, answer);
	if (b.failed)
		s->failure = -ENOMEM; /* the other end must not wait for it */
	else /* who has withdrawn it learns from this whether it was sent */
		put(s, with_piece ? WIRE_DATA_DONE : WIRE_DONE, j->number.id, buf_str(&b));
	buf_free(&b);
	job_free(j);
}

/* --- What the other end says --- */

static void fail(struct job *j, int code, const char *why)
{
	const struct http_response none = {.result = code, .retry_after_ms = -1, .error = why};

	on_done(j, &none);
}

static int64_t on_read(void *context, char *to, size_t n);

static void begin(struct job *j, struct str body)
{
	struct http_request *q = &j->wire.request;
	struct error err = ERROR_NULL;
	int r;

	q->body = body;
	q->left = j->wire.calls & WIRE_CALLS_LEFT ? on_left : NULL;
	q->begun = j->wire.calls & WIRE_CALLS_BEGUN ? on_begun : NULL;
	q->data = j->wire.calls & WIRE_CALLS_DATA ? on_data : NULL;
	q->read = j->wire.calls & WIRE_CALLS_READ ? on_read : NULL;
	q->read_bytes = j->wire.body_bytes;
	q->done = on_done;
	q->context = j;
	r = http_send(j->server->loop.client, &j->wire.config, q, &j->http, &err);
	q->body = STR_NULL;
	if (r < 0)
		fail(j, r, err.code ? err.text : "out of memory for a request");
}

static int receive_request(struct server *s, uint64_t id, struct str message)
{
	struct job *j = calloc(1, sizeof(*j));
	int r = j ? wire_get_request(message, &j->wire) : -ENOMEM;

	if (r < 0) {
		free(j);
		return r;
	}
	j->server = s;
	j->number.id = id;
	r = numbered_add(&s->jobs, &j->number);
	if (r < 0) {
		wire_request_fini(&j->wire);
		free(j);
		return r;
	}
	if (j->wire.body_bytes && !(j->wire.calls & WIRE_CALLS_READ))
		s->receiving = j;
	else
		begin(j, STR_NULL);
	return 0;
}

static int receive_body(struct server *s, uint64_t id, struct str body)
{
	struct job *j = s->receiving;

	/* One that was asked for, of a request that has ended meanwhile. */
	if (!j && !find(s, id))
		return 0;
	if (!j || j->number.id != id || body.n != j->wire.body_bytes)
		return -EBADMSG;
	s->receiving = NULL;
	begin(j, body);
	return 0;
}

static void cancel(struct server *s, uint64_t id, bool answers)
{
	struct job *j = find(s, id);
	/* One that is gone has said so before. */
	bool sent = !j || http_withdraw(s->loop.client, j->http);

	if (s->receiving == j)
		s->receiving = NULL;
	if (j)
		job_free(j);
	if (answers)
		put_number(s, WIRE_WITHDRAWN, id, sent);
}

static int receive(struct server *s, const struct channel_message *m)
{
	switch (m->type) {
	case WIRE_REQUEST:
		return receive_request(s, m->id, m->payload);
	case WIRE_BODY:
		return receive_body(s, m->id, m->payload);
	case WIRE_CANCEL:
	case WIRE_WITHDRAW:
		cancel(s, m->id, m->type == WIRE_WITHDRAW);
		return 0;
	case WIRE_NO_BODY:
		return 0;
	default:
		return -EBADMSG;
	}
}

static void receive_aside(struct server *s)
{
	for (size_t i = 0; i < s->aside.n; i++) {
		struct aside *a = &s->aside.p[i];
		const struct channel_message m = {a->type, a->id, buf_str(&a->payload)};

		if (!s->failure)
			s->failure = receive(s, &m);
		buf_free(&a->payload);
	}
	s->aside.n = 0;
}

/* Nobody makes the body of a request that was cancelled: it may ask before this is its turn. */
static void set_aside(struct server *s, const struct channel_message *m)
{
	struct aside a = {.type = m->type, .id = m->id};
	struct job *j = find(s, m->id);

	if (j && (m->type == WIRE_CANCEL || m->type == WIRE_WITHDRAW))
		j->cancelled = true;
	if (buf_str_append(&a.payload, m->payload) < 0 || !vec_push(&s->aside, a)) {
		buf_free(&a.payload);
		s->failure = -ENOMEM;
	}
}

/* The piece that was asked for, or the errno in its place; -EAGAIN: this is something else. */
static int64_t take_piece(const struct job *j, const struct channel_message *m, char *to, size_t n)
{
	uint64_t error;

	if (m->id != j->number.id)
		return -EAGAIN;
	if (m->type == WIRE_NO_BODY)
		return wire_get_number(m->payload, &error) && error && error < 4096
			       ? -(int64_t)error
			       : -EBADMSG;
	if (m->type != WIRE_BODY)
		return -EAGAIN;
	if (!m->payload.n || m->payload.n > n)
		return -EBADMSG;
	memcpy(to, m->payload.p, m->payload.n);
	return (int64_t)m->payload.n;
}

static int64_t on_read(void *context, char *to, size_t n)
{
	struct job *j = context;
	struct server *s = j->server;
	struct channel_message m;

	n = n < CHANNEL_PIECE ? n : CHANNEL_PIECE;
	if (!j->cancelled)
		put_number(s, WIRE_WANT, j->number.id, n);
	while (!s->failure && !j->cancelled) {
		struct pollfd ready = {.fd = s->channel.fd, .events = POLLIN};
		int r = channel_take(&s->channel, &m);
		int64_t got;

		if (r == 0)
			poll(&ready, 1, -1);
		if (r < 0)
			s->failure = r;
		if (r <= 0)
			continue;
		got = take_piece(j, &m, to, n);
		if (got != -EAGAIN)
			return got;
		set_aside(s, &m);
	}
	return -ECANCELED;
}

static void turn(struct server *s)
{
	struct channel_message m;
	int r = 0;

	receive_aside(s);
	while (!s->failure && (r = channel_take(&s->channel, &m)) == 1)
		s->failure = receive(s, &m);
	if (!s->failure)
		s->failure = r;
	release_held(s);
	if (!s->failure)
		http_polled_turn(&s->loop, INT64_MAX);
	release_held(s);
}

static void server_fini(struct server *s)
{
	struct numbered *j;

	http_polled_fini(&s->loop);
	while ((j = numbered_last(&s->jobs)))
		job_free((struct job *)j);
	numbered_free(&s->jobs);
	vec_each (&s->aside, a)
		buf_free(&a->payload);
	vec_free(&s->aside);
	buf_free(&s->held);
	channel_fini(&s->channel);
}

int http_serve(int socket)
{
	struct server s = {.failure = 0};
	struct error err = ERROR_NULL;
	int r = channel_init(&s.channel, socket, (size_t)1 << 30);

	if (r < 0)
		return r;
	r = http_polled_init(&s.loop, &err);
	if (r == 0) {
		r = http_polled_more(&s.loop, socket);
		if (r < 0)
			http_polled_fini(&s.loop);
	}
	if (r < 0) {
		put(&s, WIRE_HELLO, 1, err.code ? str_of(err.text) : STR("memory is short"));
		channel_fini(&s.channel);
		return r;
	}
	put(&s, WIRE_HELLO, 0, STR_NULL);
	while (!s.failure)
		turn(&s);
	server_fini(&s);
	return s.failure == -EPIPE ? 0 : s.failure;
}

void http_serve_refusal(int socket, bool passes, const char *why)
{
	struct channel c;

	if (channel_init(&c, socket, 0) < 0)
		return;
	channel_put(&c, WIRE_HELLO, passes, str_of(why));
	channel_fini(&c);
}

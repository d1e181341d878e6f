/* SPDX-License-Identifier: Apache-2.0 */
/* The end of whoever wants answers. Contract in sender.h.
 *
 * `done` is called only from ready and timeout, never from within send, cancel or withdraw; so a
 * process that is found broken there is left to a timer that fires at once. */
#include "http/sender/sender-private.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "http/sender/readable.h"
#include "http/sender/wire.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ASIDE   (16u << 20) /* while a request is withdrawn */
#define WITHDRAW_MS 1000
#define AT_ONCE     64 /* messages that are read before others have their turn */

/* What reading has come to. Behind what is lost or wrong nothing counts, and behind the end there
 * is nothing. */
static void note_read(struct sender *a, int r)
{
	if (r >= 0)
		return;
	a->heard_out = true;
	if (r != -EPIPE || !a->broken)
		a->broken = r;
}

/* What came while a request was withdrawn. */
static void handle_aside(struct sender *a)
{
	int r = 0;

	for (size_t i = 0; i < a->aside.n && r == 0; i++) {
		const struct aside *m = &a->aside.p[i];
		const struct channel_message message = {m->type, m->id, buf_str(&m->payload)};

		r = sender_handle(a, &message);
	}
	note_read(a, r);
	sender_clear_aside(a);
}

/* Whether there was one. */
static bool handle_next(struct sender *a)
{
	struct channel_message m;
	int r = a->heard_out ? 0 : channel_take(&a->channel, &m);
	bool some = r == 1;

	if (some)
		r = sender_handle(a, &m);
	note_read(a, r);
	return some;
}

#define WHY_BYTES 1100

/* What it had said counts, however it has ended: what it has sent is not to be sent again. There is
 * no more of it than the socket holds. */
static void hear_out(struct sender *a, char *ret_why)
{
	char how[64] = "";

	/* One that has closed its socket has begun to end, and says so as it would have. */
	sender_stop(a, false, how, sizeof(how));
	handle_aside(a);
	while (handle_next(a))
		;
	vec_each (&a->requests.items, item) {
		struct waiting *w = (struct waiting *)*item;

		w->given = sender_was_given(a, w);
	}
	snprintf(ret_why, WHY_BYTES, "%s", sender_reason(a, how));
	sender_discard(a, false, how, sizeof(how));
}

static void fail_requests(struct sender *a, const char *why)
{
	struct waiting *w;
	char text[1200];

	while ((w = (struct waiting *)numbered_last(&a->requests))) {
		snprintf(text, sizeof(text),
			 "the process that speaks to %.300s ended before there was an answer: "
			 "%.600s",
			 w->peer, why);
		waiting_end(a, w, -ECONNRESET, w->given, text);
	}
}

static void end_process(struct sender *a)
{
	char why[WHY_BYTES];

	hear_out(a, why);
	sender_plan_next(a, why);
	fail_requests(a, why);
}

/* Of one whose requests have ended or are freed. */
static void free_former(struct sender *a)
{
	struct sender *former = a->former;
	char how[64];

	a->former = NULL;
	sender_discard(former, false, how, sizeof(how));
	if (former->unreaped >= 0) {
		sender_forget_unreaped(a);
		a->unreaped = take_fd(former->unreaped);
	}
	vec_free(&former->aside);
	numbered_free(&former->requests);
	vec_free(&former->deadlines.items);
	free(former);
}

/* The former one goes when its last request has. What a callback asks meanwhile is of the next. */
static void settle_former(struct sender *a)
{
	struct sender *former = a->former;
	char why[WHY_BYTES];

	if (former && !former->broken && former->requests.items.n &&
	    clock_mono() >= a->former_until_ns)
		former->broken = -ESTALE;
	if (former && former->broken) {
		hear_out(former, why);
		fail_requests(former, why);
	}
	if (former && !former->requests.items.n)
		free_former(a);
}

static void start_next(struct sender *a)
{
	int r = sender_start(a);

	if (r == 0)
		return;
	a->started_ns = clock_mono();
	sender_plan_next(a, strerror(-r));
}

/* Whether the process, or an answer, has taken too long. */
static bool is_overdue(const struct sender *a)
{
	const struct due *first = due_first(&a->deadlines);
	int64_t now = clock_mono();

	if (!a->ready && now >= a->started_ns + HTTP_SENDER_WAIT_MS * NS_PER_MSEC)
		return true;
	if (first && now >= first->at_ns)
		return true;
	return a->silent_ns && now >= a->silent_ns + HTTP_SENDER_WAIT_MS * NS_PER_MSEC;
}

static void read_messages(struct sender *a)
{
	handle_aside(a);
	/* A callback may find it broken; it is heard out at its end. */
	for (int i = 0; i < AT_ONCE && !a->broken && handle_next(a); i++)
		;
}

static void flush(struct sender *a)
{
	int r = a->broken ? 0 : channel_flush(&a->channel);

	if (r < 0)
		a->broken = r;
}

static void settle(struct sender *a)
{
	if (a->broken)
		end_process(a);
	settle_former(a);
	sender_arm(a);
}

static void attend(struct sender *a, uint32_t events)
{
	if (events & HTTP_OUT)
		flush(a);
	read_messages(a);
}

static void sender_ready(struct http_client *base, int fd, uint32_t events)
{
	struct sender *a = (struct sender *)base;

	a->in_turn = true;
	if (fd == a->channel.fd)
		attend(a, events);
	else if (a->former && fd == a->former->channel.fd)
		attend(a->former, events);
	settle(a);
	a->in_turn = false;
}

/* Who was stopped himself finds that time is over and that the answer is there. */
static void look(struct sender *a)
{
	read_messages(a);
	if (!a->broken && is_overdue(a))
		a->broken = -ETIMEDOUT;
}

static void sender_timeout(struct http_client *base)
{
	struct sender *a = (struct sender *)base;

	a->armed_ns = INT64_MAX;
	a->in_turn = true;
	if (a->channel.fd >= 0)
		look(a);
	else if (clock_mono() >= a->next_ns)
		start_next(a);
	if (a->former)
		look(a->former);
	settle(a);
	a->in_turn = false;
}

/* --- What its owner asks --- */

/* The process goes on with its requests, and has no further ones. False: memory is short. */
static bool make_former(struct sender *a)
{
	int64_t keep_ms = a->process.stale_ms ? a->process.stale_ms : HTTP_SENDER_STALE_MS;
	struct sender *former = malloc(sizeof(*former));

	if (!former)
		return false;
	*former = *a;
	former->unreaped = -1;
	a->former = former;
	a->former_until_ns = clock_mono() + keep_ms * NS_PER_MSEC;
	a->channel = (struct channel){.fd = -1};
	a->pidfd = -1;
	a->ready = a->watches_out = a->heard_out = false;
	a->requests = (struct numbered_table){0};
	a->deadlines = (struct due_heap){0};
	memset(&a->aside, 0, sizeof(a->aside));
	a->aside_bytes = 0;
	return true;
}

/* Replaces a process that can no longer read what it is to read. Not from a callback, whose answer
 * may lie in what is moved; and not while there is a former one, so that there are two at most. */
static void renew(struct sender *a)
{
	char how[64];

	if (a->channel.fd < 0 || a->broken || a->in_turn || a->former || !a->process.is_stale ||
	    !a->process.is_stale(a->process.context))
		return;
	if (!a->requests.items.n)
		sender_discard(a, false, how, sizeof(how));
	else if (!make_former(a))
		return;
	start_next(a);
}

static int put_request(struct sender *a, uint64_t id, const struct http_config *config,
		       const struct http_request *q)
{
	struct buf b = {.limit = WIRE_MAX_REQUEST};
	bool has_body = !q->read && q->body.n;
	int r;

	wire_put_request(&b, config, q);
	r = b.failed ? -ENOMEM : channel_put(&a->channel, WIRE_REQUEST, id, buf_str(&b));
	buf_free(&b);
	if (r == 0 && has_body)
		r = channel_put(&a->channel, WIRE_BODY, id, q->body);
	if (r == -ENOMEM) { /* of a part there may be: nobody waits for the rest */
		sender_put(a, WIRE_CANCEL, id, STR_NULL);
		return r;
	}
	if (r < 0)
		a->broken = r;
	return 0;
}

static int refuse(const struct sender *a, const struct http_config *config, struct error *err)
{
	if (config->unix_socket.p)
		return error_set(err, -EOPNOTSUPP, "%.*s cannot be reached by a sender",
				 STR_FMT(config->unix_socket));
	if (a->channel.fd >= 0 && !a->broken)
		return 0;
	/* Without the time, which would make another finding of each attempt. */
	return error_set(err, -EAGAIN,
			 "the process that speaks to servers has ended (%s); another is started "
			 "soon",
			 a->why);
}

/* An answer may take no longer. */
static int64_t longest_ms(const struct http_config *config, const struct http_request *request)
{
	return request->timeout_ms + HTTP_SENDER_WAIT_MS + (config->oauth2 ? HTTP_TOKEN_MS : 0);
}

static int put_waiting(struct sender *a, struct waiting *w, const struct http_config *config,
		       const struct http_request *request, struct error *err)
{
	struct readable files;
	int r;

	w->request = *request;
	w->peer = str_dup(http_host(request->url));
	if (!w->peer)
		return -ENOMEM;
	r = readable_init(&files, config, http_is_https(request->url), err);
	w->number.id = a->last_id + 1;
	w->begun_ns = clock_mono();
	w->deadline.at_ns = INT64_MAX;
	if (request->timeout_ms)
		w->deadline.at_ns = w->begun_ns + longest_ms(config, request) * NS_PER_MSEC;
	if (r == 0)
		r = waiting_link(a, w);
	if (r == 0) {
		a->last_id = w->number.id;
		r = put_request(a, w->number.id, &files.config, request);
		if (r < 0)
			waiting_unlink(a, w);
		w->last_packet = a->broken ? UINT64_MAX : a->channel.n_put;
	}
	readable_fini(&files);
	return r;
}

static int sender_send(struct http_client *base, const struct http_config *config,
		       const struct http_request *request, uint64_t *ret_id, struct error *err)
{
	struct sender *a = (struct sender *)base;
	struct waiting *w;
	int r;

	check(request->method && request->done && request->timeout_ms >= 0 &&
	      request->stall_ms >= 0);
	renew(a);
	r = refuse(a, config, err);
	if (r < 0) {
		sender_arm(a);
		return r;
	}
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	r = put_waiting(a, w, config, request, err);
	sender_arm(a);
	if (r < 0)
		waiting_free(w);
	else
		*ret_id = w->number.id;
	return r;
}

/* Which process makes the request; the last one, if none does. */
static struct sender *maker_of(struct sender *a, uint64_t id)
{
	return a->former && sender_find(a->former, id) ? a->former : a;
}

static void sender_cancel(struct http_client *base, uint64_t id)
{
	struct sender *a = maker_of((struct sender *)base, id);
	struct waiting *w = sender_find(a, id);

	if (!w)
		return;
	waiting_unlink(a, w);
	waiting_free(w);
	sender_put(a, WIRE_CANCEL, id, STR_NULL);
	sender_arm((struct sender *)base);
}

static int set_aside(struct sender *a, const struct channel_message *m)
{
	struct aside copy = {.type = m->type, .id = m->id};

	a->aside_bytes += m->payload.n + sizeof(copy);
	if (a->aside_bytes <= MAX_ASIDE && buf_str_append(&copy.payload, m->payload) == 0 &&
	    vec_push(&a->aside, copy))
		return 0;
	buf_free(&copy.payload);
	return -ENOMEM;
}

/* Whether the request had been sent, as the message says that ends it. 0 or -EBADMSG. */
static int read_end(uint32_t type, struct str message, bool *ret_sent)
{
	struct http_response answer;
	char text[WIRE_MAX_ERROR];
	struct str piece;
	int r;

	if (type == WIRE_DATA_DONE && !wire_split(message, &piece, &message))
		return -EBADMSG;
	r = wire_get_answer(message, &answer, text);
	*ret_sent = r == 0 && answer.sent;
	return r;
}

static bool is_end(uint32_t type)
{
	return type == WIRE_DONE || type == WIRE_DATA_DONE;
}

/* A message while one is withdrawn: 1 if that settles it. What it may not wait for is done. */
static int consider(struct sender *a, const struct channel_message *m, uint64_t id, bool *ret_sent)
{
	uint64_t sent;
	int r;

	if (m->type == WIRE_HELLO || m->type == WIRE_WANT)
		return sender_handle(a, m);
	if (m->id != id)
		return set_aside(a, m);
	if (m->type == WIRE_WITHDRAWN) {
		if (!wire_get_number(m->payload, &sent))
			return -EBADMSG;
		*ret_sent = sent;
		return 1;
	}
	if (!is_end(m->type))
		return 0;
	r = read_end(m->type, m->payload, ret_sent);
	return r < 0 ? r : 1;
}

/* Whether it had said so before: it knows nothing of the request any more. */
static bool has_answered(const struct sender *a, uint64_t id, bool *ret_sent)
{
	vec_each (&a->aside, m)
		if (m->id == id && is_end(m->type)) {
			read_end(m->type, buf_str(&m->payload), ret_sent);
			return true;
		}
	return false;
}

/* Whether it has said so. One that gets no CPU is waited for once, and then goes on. */
static bool await_withdrawn(struct sender *a, uint64_t id, bool *ret_sent)
{
	int64_t until = clock_mono() + (a->silent_ns ? 0 : WITHDRAW_MS * NS_PER_MSEC), left;
	struct channel_message m;
	int r = 0;

	while (r == 0 && (left = until - clock_mono()) > 0) {
		struct pollfd ready = {.fd = a->channel.fd, .events = POLLIN};

		flush(a);
		if (channel_waits(&a->channel))
			ready.events |= POLLOUT;
		r = channel_take(&a->channel, &m);
		if (r == 1) {
			a->silent_ns = 0;
			r = consider(a, &m, id, ret_sent);
		} else if (r == 0 && a->broken)
			return false; /* it is told no more, and has said all */
		else if (r == 0)
			poll(&ready, 1, (int)(left / NS_PER_MSEC) + 1);
	}
	note_read(a, r);
	if (r == 0 && !a->broken && !a->silent_ns)
		a->silent_ns = clock_mono();
	return r == 1;
}

static bool sender_withdraw(struct http_client *base, uint64_t id)
{
	struct sender *a = maker_of((struct sender *)base, id);
	struct waiting *w = sender_find(a, id);
	bool sent = false;

	if (!w)
		return false;
	waiting_unlink(a, w);
	if (!has_answered(a, id, &sent)) {
		sender_put(a, WIRE_WITHDRAW, id, STR_NULL);
		if (a->channel.fd >= 0 && (a->heard_out || !await_withdrawn(a, id, &sent)))
			sent = sender_was_given(a, w);
	}
	sent |= w->left;
	waiting_free(w);
	sender_arm((struct sender *)base);
	return sent;
}

static void free_requests(struct sender *a)
{
	struct waiting *w;

	while ((w = (struct waiting *)numbered_last(&a->requests))) {
		waiting_unlink(a, w);
		waiting_free(w);
	}
}

static void sender_free(struct http_client *base)
{
	struct sender *a = (struct sender *)base;
	char how[64];

	if (a->former) {
		free_requests(a->former);
		free_former(a);
	}
	free_requests(a);
	sender_discard(a, !a->broken, how, sizeof(how));
	sender_forget_unreaped(a);
	if (a->armed_ns != INT64_MAX)
		a->loop.timer(a->loop.context, -1);
	vec_free(&a->aside);
	numbered_free(&a->requests);
	vec_free(&a->deadlines.items);
	free(a);
}

static const struct http_client_calls calls = {
	.ready = sender_ready,
	.timeout = sender_timeout,
	.send = sender_send,
	.cancel = sender_cancel,
	.withdraw = sender_withdraw,
	.free = sender_free,
};

/* Waits for what the process says first. */
static void await_hello(struct sender *a)
{
	while (!a->broken && !a->ready) {
		struct pollfd ready = {.fd = a->channel.fd, .events = POLLIN};
		int64_t left = a->started_ns + HTTP_SENDER_WAIT_MS * NS_PER_MSEC - clock_mono();

		if (handle_next(a) || a->broken)
			continue;
		if (left <= 0)
			a->broken = -ETIMEDOUT;
		else
			poll(&ready, 1, (int)(left / NS_PER_MSEC) + 1);
	}
}

int http_sender_new(const struct http_loop *loop, const struct http_process *process,
		    struct http_client **ret, struct error *err)
{
	struct sender *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->base.calls = &calls;
	a->loop = *loop;
	a->process = *process;
	a->channel.fd = a->pidfd = a->unreaped = -1;
	a->next_ns = a->armed_ns = INT64_MAX;
	start_next(a);
	if (a->channel.fd >= 0)
		await_hello(a);
	if (a->broken == -EPERM) {
		error_set(err, -EPERM, "the process that speaks to servers is not ready: %s",
			  a->told.text);
		sender_free(&a->base);
		return -EPERM;
	}
	settle(a);
	*ret = &a->base;
	return 0;
}

uint64_t http_sender_starts(const struct http_client *client)
{
	return ((const struct sender *)client)->starts;
}

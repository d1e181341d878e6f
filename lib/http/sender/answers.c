/* SPDX-License-Identifier: Apache-2.0 */
/* What the process says. Contract in sender-private.h.
 *
 * It is not trusted: one that was taken over by a server's answer may say anything. What no process
 * of ours would say is an error, and ends it. What it says of a request that has ended or was
 * cancelled was on its way, and is ignored. */
#include "http/sender/sender-private.h"

#include "base/check.h"
#include "base/clock.h"
#include "http/sender/wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_COLLECTED (1u << 20) /* as http.h has it */

struct waiting *sender_find(const struct sender *a, uint64_t id)
{
	return (struct waiting *)numbered_find(&a->requests, id);
}

int waiting_link(struct sender *a, struct waiting *w)
{
	bool ends = w->deadline.at_ns != INT64_MAX;

	w->deadline.place = DUE_NOWHERE;
	if (numbered_add(&a->requests, &w->number) < 0)
		return -ENOMEM;
	if (!ends || due_add(&a->deadlines, &w->deadline))
		return 0;
	numbered_remove(&a->requests, &w->number);
	return -ENOMEM;
}

void waiting_unlink(struct sender *a, struct waiting *w)
{
	numbered_remove(&a->requests, &w->number);
	due_remove(&a->deadlines, &w->deadline);
}

void waiting_free(struct waiting *w)
{
	if (!w)
		return;
	buf_free(&w->body);
	free(w->peer);
	free(w);
}

static void finish(struct sender *a, struct waiting *w, struct http_response *answer)
{
	waiting_unlink(a, w);
	answer->body = buf_str(&w->body);
	w->request.done(w->request.context, answer);
	waiting_free(w);
}

void waiting_end(struct sender *a, struct waiting *w, int result, bool sent, const char *why)
{
	struct http_response none = {.result = result,
				     .sent = sent,
				     .error = why,
				     .retry_after_ms = -1,
				     .elapsed_ns = clock_mono() - w->begun_ns};

	buf_clear(&w->body);
	finish(a, w, &none);
}

/* Whether all of it was given to a process that could send it. */
bool sender_was_given(const struct sender *a, const struct waiting *w)
{
	return w->left || (a->ready && a->channel.n_gone >= w->last_packet);
}

void sender_put(struct sender *a, uint32_t type, uint64_t id, struct str payload)
{
	int r = a->channel.fd < 0 || a->broken ? 0 : channel_put(&a->channel, type, id, payload);

	if (r < 0)
		a->broken = r;
}

static void put_number(struct sender *a, uint32_t type, uint64_t id, uint64_t n)
{
	sender_put(a, type, id, wire_number(&n));
}

/* Ends a request of which the process is to do no more. */
static void give_up(struct sender *a, struct waiting *w, int result, const char *why)
{
	char text[512];

	snprintf(text, sizeof(text), "%s %.300s %s",
		 result == -ENOMEM ? "memory for the answer of" : "the answer of", w->peer, why);
	sender_put(a, WIRE_CANCEL, w->number.id, STR_NULL);
	waiting_end(a, w, result, true, text);
}

static int on_hello(struct sender *a, bool passes, struct str why)
{
	if (a->ready)
		return -EBADMSG;
	if (why.n)
		return error_set(&a->told, passes ? -EAGAIN : -EPERM, "%.*s",
				 STR_FMT(str_first(why, 900)));
	a->ready = true;
	return 0;
}

static int on_left(struct waiting *w)
{
	if (!w->request.left || w->left)
		return -EBADMSG;
	w->left = true;
	w->request.left(w->request.context);
	return 0;
}

static int on_begun(struct waiting *w)
{
	if (!w->request.begun || w->begun)
		return -EBADMSG;
	w->begun = true;
	w->request.begun(w->request.context);
	return 0;
}

static int on_data(struct sender *a, struct waiting *w, struct str piece)
{
	uint64_t max = w->request.max_response ? w->request.max_response : MAX_COLLECTED;
	uint64_t id = w->number.id;
	bool more;

	w->received += piece.n;
	if (!w->request.data || (w->request.begun && !w->begun) || w->received > max)
		return -EBADMSG;
	more = w->request.data(w->request.context, piece);
	w = sender_find(a, id); /* it may have been cancelled */
	if (w && !more)
		give_up(a, w, -ECANCELED, "was not read to its end");
	return 0;
}

static int on_collected(struct sender *a, struct waiting *w, struct str piece)
{
	uint64_t max = w->request.max_response ? w->request.max_response : MAX_COLLECTED;

	if (w->request.data && max > MAX_COLLECTED)
		max = MAX_COLLECTED;
	if (w->body.n + piece.n > max)
		return -EBADMSG;
	if (buf_str_append(&w->body, piece) < 0)
		give_up(a, w, -ENOMEM, "is short");
	return 0;
}

static int on_answer(struct sender *a, struct waiting *w, struct str message)
{
	int64_t since_ns = clock_mono() - w->begun_ns;
	struct http_response answer;
	char text[WIRE_MAX_ERROR];
	int r = wire_get_answer(message, &answer, text);

	if (r < 0)
		return r;
	answer.sent |= w->left;
	if (answer.elapsed_ns > since_ns)
		answer.elapsed_ns = since_ns;
	if (answer.status == 0)
		buf_clear(&w->body);
	finish(a, w, &answer);
	return 0;
}

static int on_data_and_answer(struct sender *a, struct waiting *w, struct str message)
{
	uint64_t id = w->number.id;
	struct str piece, answer;
	int r;

	if (!wire_split(message, &piece, &answer))
		return -EBADMSG;
	r = on_data(a, w, piece);
	w = r == 0 ? sender_find(a, id) : NULL; /* it may have been ended */
	return w ? on_answer(a, w, answer) : r;
}

static int on_want(struct sender *a, struct waiting *w, struct str message)
{
	const struct http_request *q = &w->request;
	uint64_t n, left = q->read ? q->read_bytes - w->made : 0;
	char piece[CHANNEL_PIECE];
	int64_t got;

	if (!wire_get_number(message, &n) || !n || n > sizeof(piece) || !left)
		return -EBADMSG;
	/* One that asks has read what it asked for before. So no more than a piece waits here. */
	if (a->channel.n_gone < w->last_piece)
		return -EBADMSG;
	got = q->read(q->context, piece, n < left ? (size_t)n : (size_t)left);
	if (got <= 0) {
		w->made = q->read_bytes; /* it asks no more */
		put_number(a, WIRE_NO_BODY, w->number.id, got ? (uint64_t)-got : ENODATA);
		return 0;
	}
	check((uint64_t)got <= n && (uint64_t)got <= left);
	w->made += (uint64_t)got;
	sender_put(a, WIRE_BODY, w->number.id, (struct str){piece, (size_t)got});
	w->last_piece = a->channel.n_put;
	return 0;
}

int sender_handle(struct sender *a, const struct channel_message *m)
{
	struct waiting *w = sender_find(a, m->id);

	a->silent_ns = 0;
	if (m->type == WIRE_HELLO)
		return on_hello(a, m->id != 0, m->payload);
	if (!a->ready || m->type < WIRE_HELLO || m->type > WIRE_DATA_DONE)
		return -EBADMSG;
	if (!w)
		return 0;
	switch (m->type) {
	case WIRE_LEFT:
		return on_left(w);
	case WIRE_BEGUN:
		return on_begun(w);
	case WIRE_DATA:
		return on_data(a, w, m->payload);
	case WIRE_COLLECTED:
		return on_collected(a, w, m->payload);
	case WIRE_DONE:
		return on_answer(a, w, m->payload);
	case WIRE_DATA_DONE:
		return on_data_and_answer(a, w, m->payload);
	case WIRE_WANT:
		return on_want(a, w, m->payload);
	default:
		return -EBADMSG;
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The requests of an endpoint: how they are filled, paced and sent, and what follows from an
 * answer, or from none.
 *
 * What may be sent twice is tried until it is answered; that it has left stands in the spool from
 * that moment until the server says no. What may not is marked as sent, on disk, before it goes;
 * and where no answer comes after its last byte has left, it is uncertain and not sent again. That
 * it did not go after all is on disk too before it waits, and it goes again only once the server
 * has answered a request that is empty: whatever becomes of disk and agent in an outage, nothing in
 * the spool says of what nobody took that it was sent. */
#include "pyroscope-push/endpoint/endpoint-private.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>

#define HOLD_NS NS_PER_SEC
#define INGEST_TRIES 5

/* A request whose sending twice would count twice. */
static bool counts_twice(const struct endpoint *e)
{
	return !e->config->protocol->idempotent && !e->options->at_least_once;
}

static void drop_request(struct request *q, const char *reason, const char *why)
{
	endpoint_log_drop(q->endpoint, q->entries.n, why);
	q->state = REQUEST_FREE;
	endpoint_give_up(q->endpoint, &q->entries, reason);
}

static void isolate(struct request *q, const char *reason, const char *why);

/* Whether it has been tried as often as it may. In a hurry it is the deadline that ends it; with a
 * spool an outage is waited out. */
static bool is_exhausted(const struct request *q)
{
	const struct endpoint *e = q->endpoint;
	bool outage = e->config->spool_directory && q->accepted == e->accepted;

	return !e->hurried && !outage && e->options->max_retries &&
	       q->tries > e->options->max_retries;
}

/* Sets a request aside until it is tried again, or gives it up when it has been tried often enough.
 */
static void retry(struct request *q, int64_t at_least_ns, const char *why)
{
	struct endpoint *e = q->endpoint;
	bool probing = q->state == REQUEST_PROBING;
	int64_t wait = push_backoff_ns(e->options, e->hurried ? 1 : q->tries, &e->random);

	if (is_exhausted(q)) {
		if (e->config->spool_directory)
			isolate(q, "retries_exhausted", why);
		else
			drop_request(q, "retries_exhausted", why);
		return;
	}
	if (wait < at_least_ns)
		wait = at_least_ns;
	if (counts_twice(e) && !probing)
		endpoint_mark(e, &q->entries, SPOOL_UNSENT, NULL);
	e->counts.retries++;
	q->state = probing ? REQUEST_ASKING : REQUEST_WAITING;
	q->due_ns = clock_mono() + wait;
}

/* Sets a request aside until the server is known to answer. */
static void ask_first(struct request *q, const char *why)
{
	retry(q, 0, why);
	if (q->state == REQUEST_WAITING)
		q->state = REQUEST_ASKING;
}

/* Which series is at fault is not said; each is asked about by itself, and the one that is alone is
 * given up. Those that were stored are stored again as the same profile. */
static void isolate(struct request *q, const char *reason, const char *why)
{
	struct endpoint *e = q->endpoint;

	if (q->entries.n == 1) {
		drop_request(q, reason, why);
		return;
	}
	check(q->entries.n > 1);
	e->counts.isolated++;
	fifo_move(&e->alone, &q->entries);
	q->state = REQUEST_FREE;
}

/* Too fast. What was refused thrice as one is perhaps more than the server ever takes at once: it
 * goes on in pieces; and what has none, since nobody here knows its size unpacked, ends. */
static void limited(struct request *q, int64_t retry_after_ns, const char *why)
{
	bool too_large = q->tries > (q->by_ingest ? INGEST_TRIES : 2);

	if (!q->endpoint->options->retry_limited ||
	    ((q->entries.n > 1 || q->by_ingest) && too_large))
		isolate(q, "refused", why);
	else
		retry(q, retry_after_ns, why);
	if (q->state == REQUEST_WAITING)
		q->state = REQUEST_LIMITED;
}

static void accept(struct request *q)
{
	struct endpoint *e = q->endpoint;
	int64_t now = clock_mono();

	check(q->entries.n > 0);
	q->state = REQUEST_FREE;
	e->accepted++;
	endpoint_settle_all(e, &q->entries, OUTCOME_DELIVERED, NULL);
	e->cause[0] = '\0';
	for (size_t i = 0; i < ENDPOINT_IN_FLIGHT; i++) {
		struct request *other = &e->requests[i];

		if ((other->state == REQUEST_WAITING || other->state == REQUEST_ASKING) &&
		    other->due_ns > now)
			other->due_ns = now;
	}
}

/* The server broke down after the last byte: perhaps by these. The third time that it did, having
 * answered in between, they are not sent again. */
static void suspect(struct request *q, const char *why)
{
	struct endpoint *e = q->endpoint;

	if (++q->kills < REQUEST_MAX_KILLS) {
		ask_first(q, why);
		return;
	}
	if (q->entries.n == 1) {
		e->events.set_aside(e->events.context, q->entries.head->record);
		q->entries.head->unanswered = false; /* the breakdown is the answer */
	}
	isolate(q, "killed_server", why);
}

/* The connection is gone; over HTTP/2 that shows as a broken protocol. */
static bool broke_off(const struct endpoint *e, const struct http_response *response)
{
	return response->result == -ECONNRESET ||
	       (response->result == -EPROTO && e->config->protocol->http2);
}

/* Nobody can have taken it. */
static void unsent(struct request *q, const char *why)
{
	if (counts_twice(q->endpoint))
		ask_first(q, why);
	else
		retry(q, 0, why);
}

/* No answer, or none that says what became of it. */
static void unanswered(struct request *q, const struct http_response *response, const char *why)
{
	struct endpoint *e = q->endpoint;

	if (response->sent)
		endpoint_note_unanswered(e, &q->entries);
	if (response->sent && counts_twice(e)) {
		q->state = REQUEST_FREE;
		endpoint_settle_all(e, &q->entries, OUTCOME_UNCERTAIN, NULL);
	} else if (response->sent && broke_off(e, response)) {
		suspect(q, why);
	} else {
		unsent(q, why);
	}
}

/* The server has answered: a request that waits for that may go. */
static void note_answer(struct endpoint *e)
{
	for (size_t i = 0; i < ENDPOINT_IN_FLIGHT; i++)
		if (e->requests[i].state == REQUEST_ASKING)
			e->requests[i].state = REQUEST_WAITING;
}

/* Whether the server has said that it did not take it. */
static bool is_refusal(const struct answer *a)
{
	return a->action != ANSWER_ACCEPTED && a->action != ANSWER_LOST &&
	       a->action != ANSWER_UNKNOWN;
}

static void act(struct request *q, const struct http_response *response, const struct answer *a)
{
	int64_t after_ns = response->retry_after_ms > 0 ? response->retry_after_ms * NS_PER_MSEC
							: 0;

	if (is_refusal(a))
		endpoint_note_answered(q->endpoint, &q->entries);
	switch (a->action) {
	case ANSWER_ACCEPTED:
		accept(q);
		break;
	case ANSWER_ISOLATE:
		if (q->entries.n == 1) /* by now there is one */
			q->entries.head->unanswered = false;
		isolate(q, "refused", a->text);
		break;
	case ANSWER_REFUSED: /* until somebody corrects the endpoint, or there is another token */
		if (q->endpoint->config->spool_directory || response->token_refused)
			retry(q, after_ns, a->text);
		else
			drop_request(q, "refused", a->text);
		break;
	case ANSWER_LIMITED:
		limited(q, after_ns, a->text);
		break;
	case ANSWER_PAUSE:
		q->tries = 0; /* waiting for a date is no attempt */
		retry(q, a->resume_ns - clock_real(), a->text);
		break;
	case ANSWER_LOST:
	case ANSWER_UNKNOWN:
		unanswered(q, response, a->text);
		break;
	case ANSWER_RETRY:
	default:
		retry(q, after_ns, a->text);
	}
}

static void on_done(void *context, const struct http_response *response)
{
	struct request *q = context;
	struct endpoint *e = q->endpoint;
	bool probing = q->state == REQUEST_PROBING;
	struct answer a = q->by_ingest && !probing ? answer_ingest(response)
						   : e->config->protocol->classify(response);

	check(request_is_under_way(q) && q->entries.n > 0);
	e->counts.latency_ns += (uint64_t)response->elapsed_ns;
	if (response->status)
		note_answer(e);
	if (a.action != ANSWER_ACCEPTED && !(probing && response->status))
		snprintf(e->cause, sizeof(e->cause), "%s", a.text);
	if (!probing) {
		act(q, response, &a);
	} else if (response->status) {
		q->state = REQUEST_WAITING;
		q->due_ns = clock_mono();
	} else {
		retry(q, 0, a.text);
	}
	endpoint_flush(e);
	e->events.changed(e->events.context);
}

static void on_left(void *context)
{
	struct request *q = context;

	endpoint_note_left(q->endpoint, &q->entries);
}

static int send_request(struct request *q, struct http_request *request, struct error *err)
{
	const struct endpoint_options *o = q->endpoint->options;
	const struct protocol *p = q->endpoint->config->protocol;

	request->method = "POST";
	request->more_headers = o->headers;
	request->n_more_headers = o->n_headers;
	request->timeout_ms = request->connect_timeout_ms = o->timeout_ms;
	request->http2 = p->http2;
	request->max_response = 1 << 20;
	/* What is not to be sent twice is noted before. */
	request->left = q->state == REQUEST_PROBING || counts_twice(q->endpoint) ? NULL : on_left;
	request->done = on_done;
	request->context = q;
	memcpy(request->wanted, p->wanted, sizeof(request->wanted));
	return http_send(q->endpoint->http, &o->client.http, request, &q->id, err);
}

static int send_body(struct request *q, struct str body, struct error *err)
{
	const struct protocol *p = q->endpoint->config->protocol;
	struct http_request request = {.url = str_of(q->endpoint->options->url),
				       .headers = p->headers,
				       .n_headers = p->n_headers,
				       .body = body};

	return send_request(q, &request, err);
}

static bool is_for_ingest(const struct endpoint *e, const struct record *r)
{
	return e->config->protocol->ingest && ingest_is(buf_str(&r->message));
}

static int send_to_ingest(struct request *q, struct error *err)
{
	struct http_request request = {.url = str_of(q->endpoint->options->server)};
	struct http_header type = {.name = STR("Content-Type")};
	struct ingest_request what;
	char *path;
	int rc = -ENOMEM;

	if (!ingest_parse(buf_str(&q->entries.head->record->message), &what))
		return error_set(err, -EBADMSG, "what the spool has is not what was put there");
	path = str_dup(what.path);
	if (path) {
		type.value = what.content_type;
		request.path = path;
		request.headers = &type;
		request.n_headers = 1;
		request.body = what.body;
		rc = send_request(q, &request, err);
	}
	free(path);
	return rc;
}

/* A server that limits what it takes a second and at once refuses a request that goes beyond after
 * having stored a part of it. So we stay below: when a request may begin, all of it fits into what
 * is left of the burst. */
static void pay(struct endpoint *e, const struct fifo *entries)
{
	const struct protocol *p = e->config->protocol;
	int64_t now = clock_mono(), raw = 0, ahead_ns;

	if (!p->rate)
		return;
	ahead_ns = (p->burst - (int64_t)p->max_raw - (32 << 10)) * NS_PER_SEC / p->rate;
	for (const struct entry *i = entries->head; i; i = i->next)
		raw += (int64_t)i->record->raw_bytes;
	if (e->paid_ns < now - ahead_ns)
		e->paid_ns = now - ahead_ns;
	e->paid_ns += raw * NS_PER_SEC / p->rate;
}

/* Brings the messages into memory; what cannot be read back is given up. What is for /ingest goes
 * alone. */
static void load(struct request *q)
{
	struct endpoint *e = q->endpoint;
	struct fifo kept = {0}, gone = {0};
	struct entry *entry;

	q->by_ingest = false;
	while ((entry = fifo_pop(&q->entries))) {
		bool there = e->events.load(e->events.context, entry->record) == 0;
		bool alone = there && is_for_ingest(e, entry->record);

		if (alone && !kept.n && !q->entries.n)
			q->by_ingest = true;
		else if (alone)
			there = false;
		fifo_push(there ? &kept : alone ? &e->alone : &gone, entry);
	}
	q->entries = kept;
	if (gone.n)
		endpoint_log_drop(e, gone.n, "they could not be read back from the spool");
	endpoint_give_up(e, &gone, "spool_damaged");
}

/* The request's bytes are on their way, or why they are not. */
static int put_and_send(struct request *q, struct error *err)
{
	const struct protocol *p = q->endpoint->config->protocol;
	struct str *series;
	struct buf body = BUF_NULL;
	size_t n = 0;
	int rc = -ENOMEM;

	if (q->by_ingest && q->state == REQUEST_SENDING)
		return send_to_ingest(q, err);
	series = calloc(q->entries.n, sizeof(*series));
	if (!series)
		return rc;
	for (const struct entry *i = q->entries.head; i && q->state == REQUEST_SENDING; i = i->next)
		series[n++] = buf_str(&i->record->message);
	p->put_body(&body, series, n);
	if (!body.failed)
		rc = send_body(q, buf_str(&body), err);
	buf_free(&body);
	free(series);
	return rc;
}

/* What the spool has and cannot note as sent would be sent again by the next run, and counted
 * twice. It waits until the disk can be written, out of the way of what is in memory alone. */
static void hold(struct request *q)
{
	struct endpoint *e = q->endpoint;
	struct entry *entry;

	snprintf(e->cause, sizeof(e->cause),
		 "the spool cannot be written: what it holds waits, since it might be counted "
		 "twice");
	while ((entry = fifo_pop(&q->entries)))
		fifo_push(record_is_spooled(entry->record) ? &e->held : &e->queue, entry);
	q->state = REQUEST_FREE;
	e->held_until_ns = clock_mono() + HOLD_NS;
}

/* What was held is tried again, the oldest first. */
static void release_held(struct endpoint *e, int64_t now)
{
	if (!e->held.head || e->held_until_ns > now)
		return;
	fifo_move(&e->held, &e->queue);
	fifo_move(&e->queue, &e->held);
}

/* Sends what the request holds, or asks first whether the server answers. What cannot even be sent
 * (a secret's file is missing, say) counts as a try. */
static void submit(struct request *q)
{
	struct endpoint *e = q->endpoint;
	bool probing = q->state == REQUEST_ASKING;

	endpoint_expire(e, &q->entries);
	load(q);
	q->state = REQUEST_FREE;
	if (!q->entries.n)
		return;
	q->state = probing ? REQUEST_PROBING : REQUEST_SENDING;
	q->tries += !probing || counts_twice(e);
	e->counts.requests++;
	if (!probing)
		pay(e, &q->entries);
	if (!probing && counts_twice(e) && endpoint_mark(e, &q->entries, SPOOL_SENT, NULL) != 0) {
		hold(q);
		return;
	}
	e->error = ERROR_NULL;
	if (put_and_send(q, &e->error) == 0)
		return;
	snprintf(e->cause, sizeof(e->cause), "%.350s",
		 e->error.code ? e->error.text : "memory for a request is short");
	unsent(q, e->cause);
}

/* Fills a free request: with one of those that go alone, else with as many as fit. False when there
 * is nothing. */
static bool fill(struct endpoint *e, struct request *q)
{
	const struct protocol *p = e->config->protocol;
	size_t raw = 0;

	check(q->state == REQUEST_FREE && !q->entries.head);
	q->tries = 0;
	q->kills = 0;
	q->accepted = e->accepted;
	if (e->alone.head) {
		fifo_push(&q->entries, fifo_pop(&e->alone));
		return true;
	}
	while (e->queue.head && q->entries.n < p->max_series) {
		raw += e->queue.head->record->raw_bytes;
		if (q->entries.n && raw > p->max_raw)
			break;
		fifo_push(&q->entries, fifo_pop(&e->queue));
	}
	return q->entries.n > 0;
}

static void on_timer(void *arg)
{
	struct endpoint *e = arg;

	e->timer = 0;
	endpoint_flush(e);
	e->events.changed(e->events.context);
}

static bool is_paused(const struct request *q)
{
	return q->state == REQUEST_WAITING || q->state == REQUEST_LIMITED ||
	       q->state == REQUEST_ASKING;
}

/* It waits for the server: meanwhile no new one begins. */
static bool is_waiting(const struct request *q)
{
	return q->state == REQUEST_PROBING || is_paused(q);
}

/* When there is something to do without an answer having come. */
static int64_t next_due(const struct endpoint *e)
{
	bool waiting = false, free = false;
	int64_t due = INT64_MAX;

	for (size_t i = 0; i < ENDPOINT_IN_FLIGHT; i++) {
		const struct request *q = &e->requests[i];

		waiting |= is_waiting(q);
		free |= q->state == REQUEST_FREE;
		if (is_paused(q) && q->due_ns < due)
			due = q->due_ns;
	}
	if (!waiting && free && (e->alone.head || e->queue.head))
		due = 0;
	if (!waiting && e->held.head && e->held_until_ns < due)
		due = e->held_until_ns;
	return due > e->paid_ns ? due : e->paid_ns;
}

void requests_arm(struct endpoint *e)
{
	const struct andiron_host *host = e->context.host;
	int64_t due = next_due(e), now = clock_mono();

	if (e->timer)
		host->timer_cancel(e->context.instance, e->timer);
	e->timer = 0;
	if (due == INT64_MAX)
		return;
	if (host->timer_set(e->context.instance, due > now ? due - now : 0, 0, on_timer, e,
			    &e->timer) != 0)
		e->timer = 0; /* the next batch tries again */
}

void endpoint_flush(struct endpoint *e)
{
	int64_t now = clock_mono();
	bool waiting = false;

	release_held(e, now);
	for (size_t i = 0; i < ENDPOINT_IN_FLIGHT; i++) {
		struct request *q = &e->requests[i];

		if (is_paused(q) && q->due_ns <= now && e->paid_ns <= now)
			submit(q);
		waiting |= is_waiting(q);
	}
	for (size_t i = 0; !waiting && i < ENDPOINT_IN_FLIGHT && e->paid_ns <= now; i++) {
		struct request *q = &e->requests[i];

		if (q->state == REQUEST_FREE && fill(e, q))
			submit(q);
		waiting |= is_waiting(q);
	}
	requests_arm(e);
}

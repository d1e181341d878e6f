/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue and the requests of one endpoint. A record is in exactly one
 * place: the queue, the queue of those to be sent alone, or a request; it
 * leaves by settle() and by nothing else.
 *
 * Retries are counted per request, so while a server is away only the few
 * requests in flight use theirs up; the queue behind them waits for free.
 */
#include "endpoint.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"
#include "fifo.h"

#include <errno.h>
#include <stdlib.h>

#define LOG_EVERY_NS (60 * NS_PER_SEC) /* of what a server may provoke at will */

#define REQUEST_FREE 0
#define REQUEST_SENDING 1
#define REQUEST_WAITING 2

struct request {
	struct endpoint *endpoint;
	struct fifo entries;
	int state;
	bool limited; /* it waits because it came too fast */
	int64_t tries;
	int64_t due_ns; /* CLOCK_MONOTONIC, while waiting */
	uint64_t id;    /* of lib/http, while sending */
};

struct endpoint {
	struct abi_context context;
	struct http_client *http;
	struct endpoint_events events;
	struct push_config *config;
	const struct endpoint_options *options;
	struct fifo queue;
	struct fifo alone; /* from requests that were refused: one at a time */
	struct request requests[ENDPOINT_IN_FLIGHT];
	struct endpoint_counts counts;
	uint64_t timer;
	int64_t paid_ns; /* CLOCK_MONOTONIC until which what was sent uses up the protocol's rate */
	uint64_t random;
	int64_t logged_ns;
	uint64_t unlogged;
	bool hurried;
	char cause[400]; /* empty: none */
};

static void pump(struct endpoint *e);

/* The one way out. */
static void settle(struct endpoint *e, struct entry *entry, const char *dropped)
{
	struct record *r = entry->record;

	check(e->counts.queued_profiles > 0 && e->counts.queued_bytes >= record_bytes(r));
	e->counts.queued_profiles--;
	e->counts.queued_bytes -= record_bytes(r);
	if (dropped) {
		e->counts.dropped_profiles++;
		e->counts.dropped_bytes += r->message.n;
	} else {
		e->counts.sent_profiles++;
		e->counts.sent_bytes += r->message.n;
	}
	free(entry);
	e->events.settled(e->events.context, r, dropped);
}

static void settle_all(struct endpoint *e, struct fifo *f, const char *dropped)
{
	struct entry *entry;

	while ((entry = fifo_pop(f)))
		settle(e, entry, dropped);
}

/* A server can make us say this at every answer: at most once a minute. */
static void log_drop(struct endpoint *e, size_t n, const char *why)
{
	int64_t now = clock_mono();

	if (e->logged_ns && now - e->logged_ns < LOG_EVERY_NS) {
		e->unlogged += n;
		return;
	}
	e->logged_ns = now;
	abi_log(&e->context, ANDIRON_LOG_WARN, "%s: %zu profiles are lost (and %llu before): %s",
		e->options->name, n, (unsigned long long)e->unlogged, why);
	e->unlogged = 0;
}

static void drop_request(struct request *q, const char *reason, const char *why)
{
	log_drop(q->endpoint, q->entries.n, why);
	q->state = REQUEST_FREE;
	settle_all(q->endpoint, &q->entries, reason);
}

/* Half to all of min·2^tries, so that many senders do not come at once. */
static int64_t backoff_ns(struct endpoint *e, int64_t tries)
{
	int64_t ms = e->options->min_backoff_ms;

	for (int64_t i = 1; !e->hurried && i < tries && ms < e->options->max_backoff_ms; i++)
		ms *= 2;
	if (ms > e->options->max_backoff_ms)
		ms = e->options->max_backoff_ms;
	e->random = hash_u64(e->random + 1);
	return ms * NS_PER_MSEC / 2 + (int64_t)(e->random % (uint64_t)(ms * NS_PER_MSEC / 2 + 1));
}

/* Sets a request aside until it is tried again, or drops it when it has been
 * tried often enough. In a hurry it is the deadline that ends it. */
static void retry(struct request *q, int64_t at_least_ns, const char *why)
{
	struct endpoint *e = q->endpoint;
	int64_t wait = backoff_ns(e, q->tries);

	if (!e->hurried && e->options->max_retries && q->tries > e->options->max_retries) {
		drop_request(q, "retries_exhausted", why);
		return;
	}
	if (wait < at_least_ns)
		wait = at_least_ns;
	e->counts.retries++;
	q->state = REQUEST_WAITING;
	q->due_ns = clock_mono() + wait;
}

/* Which series is at fault is not said; each is asked about by itself. Those
 * that were stored are stored again as the same profile. */
static void isolate(struct request *q, const char *why)
{
	struct endpoint *e = q->endpoint;
	struct entry *entry;

	if (q->entries.n == 1) {
		drop_request(q, "refused", why);
		return;
	}
	while ((entry = fifo_pop(&q->entries)))
		fifo_push(&e->alone, entry);
	q->state = REQUEST_FREE;
}

/* Too fast. What was refused thrice as one is perhaps more than the server
 * ever takes at once: it goes on in pieces. */
static void limited(struct request *q, int64_t retry_after_ns, const char *why)
{
	if (!q->endpoint->options->retry_limited || (q->entries.n > 1 && q->tries > 2))
		isolate(q, why);
	else
		retry(q, retry_after_ns, why);
	q->limited = q->state == REQUEST_WAITING;
}

static void accept(struct request *q)
{
	struct endpoint *e = q->endpoint;
	int64_t now = clock_mono();

	q->state = REQUEST_FREE;
	settle_all(e, &q->entries, NULL);
	e->cause[0] = '\0';
	for (size_t i = 0; i < ENDPOINT_IN_FLIGHT; i++) {
		struct request *other = &e->requests[i];

		if (other->state == REQUEST_WAITING && !other->limited && other->due_ns > now)
			other->due_ns = now;
	}
}

static void on_done(void *context, const struct http_response *response)
{
	struct request *q = context;
	struct endpoint *e = q->endpoint;
	struct answer a = e->config->protocol->classify(response);
	int64_t after_ns =
		response->retry_after_ms > 0 ? response->retry_after_ms * NS_PER_MSEC : 0;

	check(q->state == REQUEST_SENDING && q->entries.n > 0);
	e->counts.latency_ns += (uint64_t)response->elapsed_ns;
	if (a.action != ANSWER_ACCEPTED)
		snprintf(e->cause, sizeof(e->cause), "%s", a.text);
	switch (a.action) {
	case ANSWER_ACCEPTED:
		accept(q);
		break;
	case ANSWER_ISOLATE:
		isolate(q, a.text);
		break;
	case ANSWER_REFUSED:
		drop_request(q, "refused", a.text);
		break;
	case ANSWER_LIMITED:
		limited(q, after_ns, a.text);
		break;
	case ANSWER_PAUSE:
		q->tries = 0; /* waiting for a date is no attempt */
		retry(q, a.resume_ns - clock_real(), a.text);
		break;
	default:
		retry(q, after_ns, a.text);
	}
	pump(e);
	e->events.changed(e->events.context);
}

static int send_body(struct request *q, struct str body, struct error *err)
{
	const struct endpoint_options *o = q->endpoint->options;
	const struct protocol *p = q->endpoint->config->protocol;
	size_t n = o->n_headers + p->n_headers;
	struct http_header *headers = calloc(n, sizeof(*headers));
	struct http_request request = {
		.method = "POST",
		.url = str_of(o->url),
		.headers = headers,
		.n_headers = n,
		.body = body,
		.timeout_ms = o->timeout_ms,
		.connect_timeout_ms = o->timeout_ms,
		.max_response = 1 << 20,
		.done = on_done,
		.context = q,
	};
	int rc;

	if (!headers)
		return -ENOMEM;
	memcpy(headers, p->headers, p->n_headers * sizeof(*headers));
	if (o->n_headers)
		memcpy(headers + p->n_headers, o->headers, o->n_headers * sizeof(*headers));
	rc = http_send(q->endpoint->http, &o->client.http, &request, &q->id, err);
	free(headers);
	return rc;
}

/*
 * A server that limits what it takes a second and at once refuses a request
 * that goes beyond after having stored a part of it. So we stay below: when a
 * request may begin, all of it fits into what is left of the burst.
 */
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

/* Sends what the request holds. What cannot even be sent (a secret's file is
 * missing, say) counts as a try. */
static void submit(struct request *q)
{
	struct endpoint *e = q->endpoint;
	struct error err = ERROR_NULL;
	struct buf body = BUF_NULL;
	int rc;

	check(q->entries.n > 0);
	q->tries++;
	q->limited = false;
	e->counts.requests++;
	pay(e, &q->entries);
	e->config->protocol->put_body(&body, &q->entries);
	rc = body.failed ? -ENOMEM : send_body(q, buf_str(&body), &err);
	buf_free(&body);
	if (rc == 0) {
		q->state = REQUEST_SENDING;
		return;
	}
	snprintf(e->cause, sizeof(e->cause), "%.350s",
		 err.code ? err.text : "memory for a request is short");
	retry(q, 0, e->cause);
}

/* Fills a free request: with one of those that go alone, else with as many as
 * fit. False when there is nothing. */
static bool fill(struct endpoint *e, struct request *q)
{
	const struct protocol *p = e->config->protocol;
	size_t raw = 0;

	check(q->state == REQUEST_FREE && !q->entries.head);
	q->tries = 0;
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
	pump(e);
	e->events.changed(e->events.context);
}

/* When there is something to do without an answer having come. */
static int64_t next_due(const struct endpoint *e)
{
	bool waiting = false, free = false;
	int64_t due = INT64_MAX;

	for (size_t i = 0; i < ENDPOINT_IN_FLIGHT; i++) {
		const struct request *q = &e->requests[i];

		waiting |= q->state == REQUEST_WAITING;
		free |= q->state == REQUEST_FREE;
		if (q->state == REQUEST_WAITING && q->due_ns < due)
			due = q->due_ns;
	}
	if (!waiting && free && (e->alone.head || e->queue.head))
		due = 0;
	return due > e->paid_ns ? due : e->paid_ns;
}

static void arm(struct endpoint *e)
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

/* Sends what is due, and begins new requests unless one waits; no more than
 * is paid for. */
static void pump(struct endpoint *e)
{
	int64_t now = clock_mono();
	bool waiting = false;

	for (size_t i = 0; i < ENDPOINT_IN_FLIGHT; i++) {
		struct request *q = &e->requests[i];

		if (q->state == REQUEST_WAITING && q->due_ns <= now && e->paid_ns <= now)
			submit(q);
		waiting |= q->state == REQUEST_WAITING;
	}
	for (size_t i = 0; !waiting && i < ENDPOINT_IN_FLIGHT && e->paid_ns <= now; i++) {
		struct request *q = &e->requests[i];

		if (q->state == REQUEST_FREE && fill(e, q))
			submit(q);
		waiting |= q->state == REQUEST_WAITING;
	}
	arm(e);
}

struct endpoint *endpoint_new(const struct abi_context *context, struct http_client *http,
			      const struct endpoint_events *events, struct push_config *config,
			      size_t index)
{
	struct endpoint *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->context = *context;
	e->http = http;
	e->events = *events;
	e->config = push_config_retain(config);
	e->options = &config->endpoints[index];
	e->random = hash_mix((uint64_t)clock_real(), (uintptr_t)e);
	for (size_t i = 0; i < ENDPOINT_IN_FLIGHT; i++)
		e->requests[i].endpoint = e;
	return e;
}

void endpoint_drop_all(struct endpoint *e, const char *reason)
{
	for (size_t i = 0; i < ENDPOINT_IN_FLIGHT; i++) {
		struct request *q = &e->requests[i];

		if (q->state == REQUEST_SENDING)
			http_cancel(e->http, q->id);
		q->state = REQUEST_FREE;
		settle_all(e, &q->entries, reason);
	}
	settle_all(e, &e->alone, reason);
	settle_all(e, &e->queue, reason);
	arm(e);
	check(!e->timer);
}

void endpoint_free(struct endpoint *e, const char *reason)
{
	if (!e)
		return;
	endpoint_drop_all(e, reason);
	check(!e->timer && endpoint_is_idle(e) && e->counts.queued_bytes == 0);
	push_config_release(e->config);
	free(e);
}

void endpoint_configure(struct endpoint *e, struct push_config *config, size_t index)
{
	check(index < config->n_endpoints);
	push_config_retain(config);
	push_config_release(e->config);
	e->config = config;
	e->options = &config->endpoints[index];
}

const char *endpoint_url(const struct endpoint *e)
{
	return e->options->url;
}

void endpoint_push(struct endpoint *e, struct record *record)
{
	struct entry *entry = malloc(sizeof(*entry)), *oldest;
	size_t n = 0;

	if (!entry) {
		e->events.settled(e->events.context, record, "no_memory");
		return;
	}
	check(record->n_unsettled > 0);
	entry->record = record;
	fifo_push(&e->queue, entry);
	e->counts.queued_profiles++;
	e->counts.queued_bytes += record_bytes(record);
	while (e->counts.queued_bytes > e->options->queue_bytes && (oldest = fifo_pop(&e->queue))) {
		n++;
		settle(e, oldest, "queue_full");
	}
	if (n)
		log_drop(e, n, "the queue is full (queue_bytes)");
}

void endpoint_flush(struct endpoint *e)
{
	pump(e);
}

void endpoint_hurry(struct endpoint *e)
{
	e->hurried = true;
	for (size_t i = 0; i < ENDPOINT_IN_FLIGHT; i++)
		e->requests[i].due_ns = 0;
	pump(e);
}

bool endpoint_is_idle(const struct endpoint *e)
{
	return e->counts.queued_profiles == 0;
}

const char *endpoint_name(const struct endpoint *e)
{
	return e->options->name;
}

const char *endpoint_cause(const struct endpoint *e)
{
	return e->cause[0] ? e->cause : NULL;
}

const struct endpoint_counts *endpoint_counts(const struct endpoint *e)
{
	return &e->counts;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The queue and the books of one endpoint. Contract in endpoint.h.
 *
 * Retries are counted per request, so while a server is away only the few requests in flight use
 * theirs up; the queue behind them waits for free. */
#include "pyroscope-push/endpoint/endpoint-private.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"

#include <stdlib.h>

#define LOG_EVERY_NS (60 * NS_PER_SEC)

static void count_reason(struct endpoint *e, const char *word)
{
	for (size_t i = 0; i < ENDPOINT_REASONS; i++) {
		struct endpoint_reason *r = &e->counts.reasons[i];

		if (!r->word)
			r->word = word;
		if (strcmp(r->word, word) == 0) {
			r->profiles++;
			return;
		}
	}
}

static void count(struct endpoint *e, const struct record *r, enum outcome outcome,
		  const char *reason)
{
	if (outcome == OUTCOME_DELIVERED) {
		e->counts.sent_profiles++;
		e->counts.sent_bytes += r->size;
		e->counts.sent_raw_bytes += r->raw_bytes;
	} else if (outcome == OUTCOME_UNCERTAIN) {
		e->counts.uncertain_profiles++;
	} else if (outcome == OUTCOME_DROPPED) {
		e->counts.dropped_profiles++;
		e->counts.dropped_bytes += r->size;
		count_reason(e, reason);
	}
}

/* The one way out for a record. */
static void settle(struct endpoint *e, struct entry *entry, enum outcome outcome,
		   const char *reason)
{
	struct record *r = entry->record;

	check(e->counts.queued_profiles > 0 && e->counts.queued_bytes >= entry->cost);
	check((outcome == OUTCOME_DROPPED) == (reason != NULL));
	check(e->counts.spooled_profiles >= entry->spooled);
	e->counts.queued_profiles--;
	e->counts.queued_bytes -= entry->cost;
	e->counts.spooled_profiles -= entry->spooled;
	count(e, r, outcome, reason);
	free(entry);
	e->events.unload(e->events.context, r);
	e->events.settled(e->events.context, r, outcome, reason);
}

int endpoint_mark(struct endpoint *e, const struct fifo *f, uint32_t what, entry_filter is_meant)
{
	int first = 0, rc = 0;
	size_t n = 0;

	for (const struct entry *i = f->head; i; i = i->next) {
		if (record_is_spooled(i->record) && (!is_meant || is_meant(i)))
			e->marks[n++] = i->record->place.sequence;
		if (n == ENDPOINT_MARKS || (n && !i->next)) { /* all of them, in a few entries */
			rc = e->events.mark(e->events.context, e->options->id, what, e->marks, n);
			first = first ? first : rc;
			n = 0;
		}
	}
	return first;
}

void endpoint_settle_all(struct endpoint *e, struct fifo *f, enum outcome outcome,
			 const char *reason)
{
	struct entry *entry;

	if (outcome != OUTCOME_LEFT)
		endpoint_mark(e, f, outcome == OUTCOME_UNCERTAIN ? SPOOL_UNCERTAIN : SPOOL_SETTLED,
			      NULL);
	while ((entry = fifo_pop(f)))
		settle(e, entry, outcome, reason);
}

static bool is_unnoted(const struct entry *entry)
{
	return !entry->noted;
}

/* Where it cannot be noted, the next run sends them as new. */
void endpoint_note_left(struct endpoint *e, struct fifo *f)
{
	endpoint_mark(e, f, SPOOL_SENT, is_unnoted);
	for (struct entry *i = f->head; i; i = i->next)
		i->noted = true;
}

static bool is_answered(const struct entry *entry)
{
	return entry->noted && !entry->unanswered;
}

void endpoint_note_answered(struct endpoint *e, struct fifo *f)
{
	endpoint_mark(e, f, SPOOL_UNSENT, is_answered);
	for (struct entry *i = f->head; i; i = i->next)
		i->noted = i->unanswered;
}

void endpoint_note_unanswered(struct endpoint *e, struct fifo *f)
{
	endpoint_note_left(e, f);
	for (struct entry *i = f->head; i; i = i->next)
		i->unanswered = true;
}

/* Takes out those that may be there. */
static struct fifo take_unanswered(struct fifo *f)
{
	struct fifo kept = {0}, taken = {0};
	struct entry *entry;

	while ((entry = fifo_pop(f)))
		fifo_push(entry->unanswered ? &taken : &kept, entry);
	*f = kept;
	return taken;
}

void endpoint_give_up(struct endpoint *e, struct fifo *f, const char *reason)
{
	struct fifo unanswered = take_unanswered(f);

	endpoint_settle_all(e, &unanswered, OUTCOME_UNCERTAIN, NULL);
	endpoint_settle_all(e, f, OUTCOME_DROPPED, reason);
}

static void give_up_one(struct endpoint *e, struct entry *entry, const char *reason)
{
	struct fifo one = {0};

	fifo_push(&one, entry);
	endpoint_give_up(e, &one, reason);
}

void endpoint_log_drop(struct endpoint *e, size_t n, const char *why)
{
	int64_t now = clock_mono();
	char before[64] = "";

	if (e->logged_ns && now - e->logged_ns < LOG_EVERY_NS) {
		e->unlogged += n;
		return;
	}
	e->logged_ns = now;
	if (e->unlogged)
		snprintf(before, sizeof(before), ", and %llu before it",
			 (unsigned long long)e->unlogged);
	abi_log(&e->context, ANDIRON_LOG_WARN, "%s: %zu profile%s given up%s: %s",
		e->options->name, n, n == 1 ? " is" : "s are", before, why);
	e->unlogged = 0;
}

void endpoint_expire(struct endpoint *e, struct fifo *f)
{
	int64_t oldest = clock_real() - e->options->max_age_ns;
	struct fifo kept = {0}, expired = {0};
	struct entry *entry;
	size_t n;

	if (!e->options->max_age_ns)
		return;
	while ((entry = fifo_pop(f)))
		fifo_push(entry->record->time_ns < oldest ? &expired : &kept, entry);
	*f = kept;
	n = expired.n;
	if (!n)
		return;
	e->counts.expired_profiles += n;
	endpoint_give_up(e, &expired, "expired");
	endpoint_log_drop(e, n, "they are older than the server takes (max_age)");
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

/* Into what is in the spool, and what is not. */
static void leave(struct endpoint *e, struct fifo *f, const char *reason, bool keep)
{
	struct fifo spooled = {0}, rest = {0}, unanswered;
	struct entry *entry;

	while ((entry = fifo_pop(f)))
		fifo_push(keep && record_is_spooled(entry->record) ? &spooled : &rest, entry);
	unanswered = take_unanswered(&spooled);
	endpoint_mark(e, &unanswered, SPOOL_SENT, NULL); /* of which memory alone may have known */
	endpoint_settle_all(e, &unanswered, OUTCOME_LEFT, NULL);
	endpoint_settle_all(e, &spooled, OUTCOME_LEFT, NULL);
	endpoint_give_up(e, &rest, reason);
}

void endpoint_leave(struct endpoint *e, const char *reason, bool keep)
{
	bool once = !e->config->protocol->idempotent && !e->options->at_least_once;

	for (size_t i = 0; i < ENDPOINT_IN_FLIGHT; i++) {
		struct request *q = &e->requests[i];
		bool sending = q->state == REQUEST_SENDING;
		bool left = request_is_under_way(q) && http_withdraw(e->http, q->id);
		bool sent = sending && left;

		q->state = REQUEST_FREE;
		/* It was marked as sent before it was. */
		if (sending && once && !sent)
			endpoint_mark(e, &q->entries, SPOOL_UNSENT, NULL);
		if (sent)
			endpoint_note_unanswered(e, &q->entries);
		if (sent && once)
			endpoint_give_up(e, &q->entries, reason);
		leave(e, &q->entries, reason, keep);
	}
	leave(e, &e->alone, reason, keep);
	leave(e, &e->held, reason, keep);
	leave(e, &e->queue, reason, keep);
	requests_arm(e);
	check(!e->timer);
}

void endpoint_free(struct endpoint *e, const char *reason)
{
	if (!e)
		return;
	endpoint_leave(e, reason, false);
	check(!e->timer && endpoint_is_idle(e) && e->counts.queued_bytes == 0);
	push_config_release(e->config);
	free(e);
}

void endpoint_configure(struct endpoint *e, struct push_config *config, size_t index)
{
	uint64_t id;

	check(index < config->n_endpoints);
	id = config->endpoints[index].id;
	if (id != e->options->id)
		e->events.mark(e->events.context, e->options->id, SPOOL_MOVED, &id, 1);
	push_config_retain(config);
	push_config_release(e->config);
	e->config = config;
	e->options = &config->endpoints[index];
}

/* Until the books fit, the oldest goes. */
static void shed(struct endpoint *e)
{
	struct entry *oldest;
	size_t n = 0;

	while (e->counts.queued_bytes > e->options->queue_bytes && (oldest = fifo_pop(&e->queue))) {
		n++;
		give_up_one(e, oldest, "queue_full");
	}
	if (n)
		endpoint_log_drop(e, n, "the queue is full (queue_bytes)");
}

void endpoint_push(struct endpoint *e, struct record *record, bool unanswered)
{
	struct entry *entry = malloc(sizeof(*entry));

	if (!entry) {
		e->events.settled(e->events.context, record,
				  unanswered ? OUTCOME_UNCERTAIN : OUTCOME_DROPPED,
				  unanswered ? NULL : "no_memory");
		return;
	}
	check(record->n_unsettled > 0);
	*entry = (struct entry){.record = record,
				.cost = record_cost(record) + sizeof(*entry),
				.spooled = record_is_spooled(record),
				.noted = unanswered,
				.unanswered = unanswered};
	fifo_push(&e->queue, entry);
	e->counts.queued_profiles++;
	e->counts.queued_bytes += entry->cost;
	e->counts.spooled_profiles += entry->spooled;
	shed(e);
}

static void each(const struct fifo *f, void (*see)(void *context, struct record *record),
		 void *context)
{
	for (const struct entry *i = f->head; i; i = i->next)
		see(context, i->record);
}

void endpoint_each(struct endpoint *e, void (*see)(void *context, struct record *record),
		   void *context)
{
	for (size_t i = 0; i < ENDPOINT_IN_FLIGHT; i++)
		each(&e->requests[i].entries, see, context);
	each(&e->alone, see, context);
	each(&e->held, see, context);
	each(&e->queue, see, context);
}

static bool is_in(const struct record *r, uint64_t segment)
{
	return record_is_spooled(r) && spool_segment(&r->place) == segment;
}

static size_t evict(struct endpoint *e, struct fifo *f, uint64_t segment)
{
	struct fifo kept = {0}, gone = {0};
	struct entry *entry;
	size_t n;

	while ((entry = fifo_pop(f)))
		fifo_push(is_in(entry->record, segment) ? &gone : &kept, entry);
	*f = kept;
	n = gone.n;
	while ((entry = fifo_pop(&gone))) /* no mark: there is nothing left to be marked */
		settle(e, entry, entry->unanswered ? OUTCOME_UNCERTAIN : OUTCOME_DROPPED,
		       entry->unanswered ? NULL : "spool_full");
	return n;
}

void endpoint_evict(struct endpoint *e, uint64_t segment,
		    void (*lose)(void *context, struct record *record), void *context)
{
	size_t n;

	for (size_t i = 0; i < ENDPOINT_IN_FLIGHT; i++)
		for (const struct entry *k = e->requests[i].entries.head; k; k = k->next)
			if (is_in(k->record, segment))
				lose(context, k->record);
	n = evict(e, &e->alone, segment) + evict(e, &e->held, segment) +
	    evict(e, &e->queue, segment);
	if (n)
		endpoint_log_drop(e, n, "the spool is full (spool.max_bytes)");
}

void endpoint_hurry(struct endpoint *e)
{
	e->hurried = true;
	for (size_t i = 0; i < ENDPOINT_IN_FLIGHT; i++)
		e->requests[i].due_ns = 0;
	endpoint_flush(e);
}

bool endpoint_is_idle(const struct endpoint *e)
{
	return e->counts.queued_profiles == 0;
}

const struct endpoint_options *endpoint_options(const struct endpoint *e)
{
	return e->options;
}

const char *endpoint_cause(const struct endpoint *e)
{
	return e->cause[0] ? e->cause : NULL;
}

const struct endpoint_counts *endpoint_counts(const struct endpoint *e)
{
	return &e->counts;
}

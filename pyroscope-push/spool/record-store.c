/* SPDX-License-Identifier: Apache-2.0 */
/* Records in memory and in the spool. Contract in record-store.h. */
#include "pyroscope-push/spool/record-store.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"

#include <errno.h>
#include <stdio.h>

#define OPEN_EVERY_NS (30 * NS_PER_SEC)
#define ASIDE         8 /* files; the oldest makes way */

static void show(struct store *s)
{
	const struct andiron_host *host = s->context.host;

	host->ledger_set(s->context.instance, ANDIRON_LEDGER_IN_FLIGHT, s->in_flight);
	host->ledger_set(s->context.instance, ANDIRON_LEDGER_SPOOLED, s->spooled);
	host->ledger_set(s->context.instance, ANDIRON_LEDGER_UNCERTAIN, s->uncertain);
}

void store_init(struct store *s, const struct abi_context *context,
		const struct store_options *options, const struct spool_events *events)
{
	*s = (struct store){.context = *context, .options = *options, .events = *events};
}

void store_fini(struct store *s)
{
	check(s->cached == 0);
	if (s->spool) /* all is said: the ledger has it */
		spool_keep(s->spool, &(struct spool_books){0});
	spool_close(s->spool);
	s->spool = NULL;
}

/* Adds to one of SPOOL_REASONS entries; what finds no room is "other". */
static void note_drop(struct spool_drop *at, const char *reason, uint64_t samples)
{
	const struct spool_drop *last = at + SPOOL_REASONS - 1;

	while (at < last && at->reason[0] && strcmp(at->reason, reason) != 0)
		at++;
	snprintf(at->reason, sizeof(at->reason), "%s", at < last ? reason : "other");
	at->samples += samples;
}

void store_drop(struct store *s, const char *reason, uint64_t samples)
{
	abi_ledger(&s->context, ANDIRON_LEDGER_DROPPED, reason, samples);
	note_drop(s->dropped, reason, samples);
}

/* What others have dropped: all that was, less what this has. */
static void note_others(const struct store *s, struct spool_books *books, uint64_t dropped)
{
	uint64_t own = 0;

	for (size_t i = 0; i < SPOOL_REASONS; i++)
		own += s->dropped[i].samples;
	if (dropped > own)
		note_drop(books->dropped, "on_the_way", dropped - own);
}

/* What the run before gave up without living to say so; how many. */
static uint64_t carry_dropped(struct store *s)
{
	const struct spool_drop *dropped = spool_dropped(s->spool);
	uint64_t sum = 0;

	for (size_t i = 0; i < SPOOL_REASONS && dropped[i].reason[0]; i++) {
		store_drop(s, dropped[i].reason, dropped[i].samples);
		sum += dropped[i].samples;
	}
	return sum;
}

/* What the run before did not live to write, or to say. */
static void tell_loss(struct store *s)
{
	uint64_t lost = spool_lost(s->spool), uncertain = spool_uncertain(s->spool);
	uint64_t dropped = carry_dropped(s), all = lost + uncertain + dropped;

	if (lost)
		store_drop(s, "lost_at_kill", lost);
	if (all) {
		abi_ledger(&s->context, ANDIRON_LEDGER_CARRIED, NULL, all);
		s->uncertain += uncertain;
		show(s);
		abi_log(&s->context, ANDIRON_LOG_WARN,
			"the run before was killed: %llu samples that it had taken are lost; of "
			"%llu that it had sent it is unknown whether they arrived; it had "
			"dropped %llu",
			(unsigned long long)lost, (unsigned long long)uncertain,
			(unsigned long long)dropped);
	}
	store_keep(s);
}

void store_keep(struct store *s)
{
	struct spool_books books = {.in_memory = s->in_flight, .uncertain = s->uncertain};
	uint64_t dropped;

	if (!s->spool || s->batching)
		return;
	memcpy(books.dropped, s->dropped, sizeof(books.dropped));
	if (s->coming) {
		books.coming = s->coming(s->coming_context, &dropped);
		note_others(s, &books, dropped);
	}
	spool_keep(s->spool, &books); /* where it fails, what was kept before counts */
}

void store_open(struct store *s)
{
	struct spool_options options = {.directory = s->options.directory,
					.owner = s->options.owner,
					.max_bytes = s->options.max_bytes};

	check(!s->spool);
	if (!s->options.directory)
		return;
	s->tried_ns = clock_mono();
	s->error = ERROR_NULL;
	if (spool_open(&options, &s->events, &s->spool, &s->error) == 0) {
		s->failure = spool_failure(s->spool);
		tell_loss(s);
		return;
	}
	s->spool = NULL;
	if (!s->error.code)
		error_set(&s->error, -ENOMEM, "memory is short");
	abi_log(&s->context, ANDIRON_LOG_WARN, "profiles are kept in memory only: %s",
		s->error.text);
}

bool store_is_due(const struct store *s)
{
	return !s->spool && s->options.directory && clock_mono() - s->tried_ns > OPEN_EVERY_NS;
}

void store_begin(struct store *s, uint64_t samples)
{
	check(!s->batching);
	s->batching = true;
	if (!s->spool)
		return;
	s->failure = spool_begin(s->spool, samples);
	s->in_batch = s->failure == 0;
}

void store_end(struct store *s)
{
	int rc = s->in_batch ? spool_end(s->spool) : 0;

	check(s->batching);
	if (rc)
		s->failure = rc;
	s->in_batch = s->batching = false;
	store_keep(s);
}

static bool append(struct store *s, struct record *r, const uint64_t *endpoints, size_t n)
{
	struct spool_item item = {.time_ns = r->time_ns,
				  .samples = r->samples,
				  .raw_bytes = r->raw_bytes,
				  .endpoints = endpoints,
				  .n_endpoints = n,
				  .message = buf_str(&r->message)};
	int rc = spool_append(s->spool, &item, &r->place);

	if (rc) {
		s->failure = rc;
		return false;
	}
	s->cached += r->message.capacity;
	return true;
}

void store_unload(struct store *s, struct record *r)
{
	if (!record_is_spooled(r) || !r->message.capacity)
		return;
	check(s->cached >= r->message.capacity);
	s->cached -= r->message.capacity;
	buf_free(&r->message);
}

void store_add(struct store *s, struct record *r, const uint64_t *endpoints, size_t n)
{
	check(!record_is_spooled(r));
	r->size = r->message.n;
	r->n_unsettled = (uint32_t)n;
	if (s->in_batch && append(s, r, endpoints, n)) {
		s->spooled += r->samples;
		if (s->cached > STORE_CACHE_BYTES)
			store_unload(s, r);
	} else {
		s->in_flight += r->samples;
	}
	show(s);
}

void store_carry(struct store *s, const struct record *r)
{
	check(record_is_spooled(r));
	s->spooled += r->samples;
	abi_ledger(&s->context, ANDIRON_LEDGER_CARRIED, NULL, r->samples);
	show(s);
}

static void end(struct store *s, struct record *r)
{
	uint64_t *level = record_is_spooled(r) ? &s->spooled : &s->in_flight;

	store_unload(s, r);
	if (r->left) { /* the level stays */
		check(record_is_spooled(r));
		record_free(r);
		return;
	}
	check(*level >= r->samples);
	*level -= r->samples;
	if (record_is_spooled(r))
		spool_release(s->spool, &r->place);
	if (r->dropped)
		store_drop(s, r->dropped, r->samples);
	else if (r->uncertain)
		s->uncertain += r->samples;
	else
		abi_ledger(&s->context, ANDIRON_LEDGER_DELIVERED, NULL, r->samples);
	show(s);
	if (r->uncertain || r->dropped || !record_is_spooled(r))
		store_keep(s);
	record_free(r);
}

void store_settle(struct store *s, struct record *r, enum outcome outcome, const char *reason)
{
	check(r->n_unsettled > 0);
	if (outcome == OUTCOME_DROPPED && !r->dropped)
		r->dropped = reason;
	r->uncertain |= outcome == OUTCOME_UNCERTAIN;
	r->left |= outcome == OUTCOME_LEFT;
	if (--r->n_unsettled == 0)
		end(s, r);
}

int store_load(struct store *s, struct record *r)
{
	int rc;

	if (r->message.n || !record_is_spooled(r))
		return 0;
	rc = spool_read(s->spool, &r->place, &r->message);
	if (rc == 0 && r->message.n != r->size)
		rc = -EBADMSG;
	s->cached += r->message.capacity;
	if (rc)
		store_unload(s, r);
	return rc;
}

void store_lose_place(struct store *s, struct record *r)
{
	check(record_is_spooled(r) && s->spooled >= r->samples);
	check(s->cached >= r->message.capacity);
	s->cached -= r->message.capacity;
	s->spooled -= r->samples;
	s->in_flight += r->samples;
	r->place.sequence = 0;
	show(s);
}

bool store_rescue(struct store *s, struct record *r, const uint64_t *endpoints, size_t n)
{
	if (!s->spool || !append(s, r, endpoints, n))
		return false;
	check(s->in_flight >= r->samples);
	s->in_flight -= r->samples;
	s->spooled += r->samples;
	show(s);
	return true;
}

int store_mark(struct store *s, uint64_t endpoint, uint32_t what, const uint64_t *sequences,
	       size_t n)
{
	return s->spool && n ? spool_mark(s->spool, endpoint, what, sequences, n) : 0;
}

int store_sync(struct store *s)
{
	return s->spool ? spool_sync(s->spool) : 0;
}

void store_set_aside(struct store *s, const struct record *r)
{
	char path[4096];

	if (!s->options.directory)
		return;
	snprintf(path, sizeof(path), "%s/aside-%llu", s->options.directory,
		 (unsigned long long)(r->place.sequence % ASIDE));
	if (file_replace(path, r->message.p, r->message.n, NULL) == 0)
		abi_log(&s->context, ANDIRON_LOG_WARN,
			"a profile after which the server broke down three times is set aside: %s",
			path);
}

const char *store_trouble(struct store *s)
{
	if (!s->options.directory)
		return NULL;
	if (!s->spool)
		return s->error.text;
	if (!s->failure)
		return NULL;
	error_errno(&s->error, s->failure, "the spool in %s cannot be written",
		    s->options.directory);
	return s->error.text;
}

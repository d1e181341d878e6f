/* SPDX-License-Identifier: Apache-2.0 */
/* Answers become batches: a worker reads them, then they are sent and their jobs told. All that has
 * come within GATHER_NS goes together, so that a thousand small answers a second are not a thousand
 * hops between threads. One worker at a time: totals are in order. */
#include "abi/batch-build.h"
#include "abi/value.h"
#include "base/check.h"
#include "base/clock.h"
#include "scrape/endpoint.h"
#include "scrape/job.h"

#include <errno.h>
#include <stdlib.h>

/* Bytes after which a batch is full, far below the most that one may have. */
#define BATCH_BYTES (8u << 20)
#define KEEP_BYTES  (1u << 20) /* of the scratch buffer, between two turns */

/* --- On the worker --- */

/* What is kept of the totals stays within `room`, which changes with it. */
static int subtract(struct flight *f, struct str raw, size_t *room, struct error *err)
{
	size_t before;
	int r;

	if (!f->totals)
		f->totals = totals_new(f->totals_kind);
	if (!f->totals)
		return -ENOMEM;
	before = totals_bytes(f->totals);
	totals_limit(f->totals, before + *room);
	r = answer_subtract(raw, f->totals, f->ended_ns, &f->send, &f->size, err);
	*room += before;
	*room -= totals_bytes(f->totals);
	return r;
}

static void judge(struct flight *f, struct buf *scratch, size_t *room)
{
	struct error err = ERROR_NULL;
	struct str raw;

	f->result = answer_read(&f->body, scratch, &f->size, &raw, &err);
	if (f->result == 0 && f->totals_kind != TOTALS_NONE)
		f->result = subtract(f, raw, room, &err);
	if (f->result < 0 && asprintf(&f->why, "the answer %s",
				      err.code ? err.text : "cannot be read: out of memory") < 0)
		f->why = NULL;
}

static void run(void *context)
{
	struct scraper *s = context;

	for (struct flight *f = s->judging; f; f = f->next)
		judge(f, &s->scratch, &s->totals_room);
	if (s->scratch.capacity > KEEP_BYTES)
		buf_free(&s->scratch);
}

/* --- Into batches --- */

struct sending {
	struct scraper *s;
	struct batch_builder *builder;
	size_t bytes;
	uint64_t profiles;
	int64_t from_ns, to_ns;
};

static void finish(struct sending *sending)
{
	struct scraper *s = sending->s;
	uint64_t n = sending->profiles;
	struct batch_head head = {sending->from_ns, sending->to_ns, s->context.instance,
				  ++s->sequence, ANDIRON_DEMANGLE_NONE};
	const struct andiron_batch *batch;
	int r;

	if (!n) {
		batch_builder_free(sending->builder);
		sending->builder = NULL;
		return;
	}
	r = batch_finish(sending->builder, &head, &batch);
	sending->builder = NULL;
	sending->bytes = 0;
	sending->profiles = 0;
	if (r < 0) {
		s->counts.failures += n;
		abi_log(&s->context, ANDIRON_LOG_ERROR,
			"%llu profiles are lost: no memory for a batch of them",
			(unsigned long long)n);
		return;
	}
	s->counts.profiles += n;
	abi_ledger(&s->context, ANDIRON_LEDGER_TAKEN, NULL, batch->samples);
	s->context.host->send_batch(s->context.instance, batch);
	batch_release(batch);
}

static bool add_group(struct sending *sending, struct flight *f)
{
	uint32_t labels[ENDPOINT_MAX_LABELS], n = 0;
	struct error err = ERROR_NULL;
	struct endpoint e;
	const struct settings *settings = sending->s->settings;
	int r = endpoint_init(&e, settings, f->job->target->row,
			      &settings->kinds[f->job->kind], &err);

	for (; r == 0 && n < e.n_labels; n++)
		labels[n] = batch_add_str_attribute(sending->builder, e.labels[n].name,
						    e.labels[n].value);
	if (r == 0)
		batch_group_begin(sending->builder, labels, n);
	endpoint_fini(&e);
	return r == 0;
}

/* False: memory was too short for the profile. */
static bool add(struct sending *sending, struct flight *f)
{
	struct str bytes = buf_str(f->totals_kind != TOTALS_NONE ? &f->send : &f->body);
	struct andiron_encoded e = {
		.format = ANDIRON_ENCODED_PPROF,
		.raw_bytes = f->size.raw_bytes,
		.n_stacks = f->size.n_stacks,
		.start_ns = f->started_ns,
		.end_ns = f->ended_ns,
	};

	if (!sending->builder)
		sending->builder = batch_builder_new();
	if (!sending->builder || !add_group(sending, f) ||
	    !batch_add_encoded(sending->builder, &e, bytes))
		return false;
	if (!sending->profiles || f->started_ns < sending->from_ns)
		sending->from_ns = f->started_ns;
	if (!sending->profiles || f->ended_ns > sending->to_ns)
		sending->to_ns = f->ended_ns;
	sending->bytes += bytes.n;
	sending->profiles++;
	if (sending->bytes >= BATCH_BYTES)
		finish(sending);
	return true;
}

static void done(void *context)
{
	struct scraper *s = context;
	struct flight *f = s->judging, *next;
	struct sending sending = {.s = s};

	s->judging = NULL;
	for (; f; f = next) {
		next = f->next;
		/* An empty difference is news of nothing. */
		if (f->result == 0 && f->size.n_stacks == 0)
			f->result = 1;
		if (f->result == 0 && f->job && !s->stopped && !add(&sending, f))
			f->result = -ENOMEM;
		scraper_landed(s, f);
	}
	finish(&sending);
	if (s->draining && !s->queue)
		s->context.host->drained(s->context.instance);
	judge_begin(s);
	scraper_say(s);
}

void judge_begin(struct scraper *s)
{
	if (s->judging || !s->queue || s->stopped)
		return;
	s->judging = s->queue;
	s->queue = NULL;
	s->queue_end = &s->queue;
	s->totals_room = s->counts.totals_bytes < TOTALS_MAX_BYTES
				 ? TOTALS_MAX_BYTES - s->counts.totals_bytes
				 : 0;
	if (s->context.host->work(s->context.instance, run, done, s) == 0)
		return;
	/* Short of memory: again when the timer fires. */
	s->queue = s->judging;
	s->judging = NULL;
	while (*s->queue_end)
		s->queue_end = &(*s->queue_end)->next;
}

void judge_add(struct scraper *s, struct flight *flight)
{
	flight->next = NULL;
	*s->queue_end = flight;
	s->queue_end = &flight->next;
	scraper_arm(s);
}

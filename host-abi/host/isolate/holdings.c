/* SPDX-License-Identifier: Apache-2.0 */
/* Batches that the process has, and what becomes of them. Contract in isolated-private.h. */
#include "host/isolate/isolated-private.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "host/isolate/batch-memory.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define MAX_HOLDINGS 4096

void isolated_count(struct isolated *p, uint32_t entry, struct str reason, uint64_t samples)
{
	if (samples)
		ledger_count(&p->instance->host->ledger, &p->instance->ledger_node, entry, reason,
			     samples);
}

uint64_t isolated_out(const struct isolated *p, const struct isolate_counts *counts)
{
	uint64_t sum = p->forwards ? p->passed : counts->delivered;

	for (size_t i = 0; i < counts->n_reasons; i++)
		sum += counts->dropped[i].samples;
	return sum;
}

/* What the process that runs has of samples and has not settled, by its own books: so the equation
 * holds whatever it says. Before it is ready, the store is what the last one has left. */
void holdings_show(struct isolated *p)
{
	const struct isolate_counts *c = &p->counts;
	uint64_t in = p->given + c->carried, waiting = 0;
	uint64_t out = isolated_out(p, c) + c->spooled + c->uncertain;

	vec_each (&p->holdings, h)
		waiting += h->given ? 0 : h->left;
	if (p->socket < 0 || !p->ready)
		in = out;
	ledger_level(&p->instance->host->ledger, &p->instance->ledger_node,
		     ANDIRON_LEDGER_IN_FLIGHT, waiting + (in > out ? in - out : 0));
}

static void take_off(struct isolated *p, size_t at)
{
	struct holding *h = &p->holdings.p[at];

	p->held_bytes -= h->batch->bytes;
	h->batch->release(h->batch->owner);
	p->holdings.n--;
	memmove(h, h + 1, (p->holdings.n - at) * sizeof(*h));
}

static void take_off_settled(struct isolated *p)
{
	while (p->holdings.n && p->holdings.p[0].given && p->holdings.p[0].left == 0)
		take_off(p, 0);
}

int holdings_add(struct isolated *p, const struct andiron_batch *batch)
{
	uint64_t most = p->instance->host->options.queue_bytes;

	if (!vec_push(&p->holdings, ((struct holding){batch, batch->samples, false}))) {
		isolated_count(p, ANDIRON_LEDGER_DROPPED, STR("no_memory"), batch->samples);
		return -ENOMEM;
	}
	batch->retain(batch->owner);
	p->held_bytes += batch->bytes;
	while (p->holdings.n > 1 && p->holdings.p[0].given &&
	       (p->held_bytes > most || p->holdings.n > MAX_HOLDINGS)) {
		p->forgotten += p->holdings.p[0].left;
		take_off(p, 0);
	}
	return 0;
}

void holdings_settle(struct isolated *p, uint64_t samples)
{
	uint64_t n = samples < p->forgotten ? samples : p->forgotten;

	p->settled += samples;
	p->forgotten -= n;
	samples -= n;
	for (size_t i = 0; samples && i < p->holdings.n && p->holdings.p[i].given; i++) {
		struct holding *h = &p->holdings.p[i];

		n = samples < h->left ? samples : h->left;
		h->left -= n;
		samples -= n;
	}
	take_off_settled(p);
}

static struct holding *next(struct isolated *p)
{
	vec_each (&p->holdings, h)
		if (!h->given)
			return h;
	return NULL;
}

void holdings_unhanded(struct isolated *p, int code, uint64_t samples, bool *said)
{
	isolated_count(p, ANDIRON_LEDGER_DROPPED,
		       code == -E2BIG ? STR("too_large") : STR("no_memory"), samples);
	if (!*said)
		log_printf(&p->instance->host->log, ANDIRON_LOG_WARN, p->instance->name,
			   "%" PRIu64 " samples are lost, since they could not be passed between "
			   "its process and the agent: %s",
			   samples, code == -E2BIG ? "it is too large" : strerror(-code));
	*said = true;
}

/* Whether nothing is wrong with the process at the other end. */
static bool is_shortage(int code)
{
	return code == -ENOMEM || code == -ENOBUFS || code == -EMFILE || code == -ENFILE ||
	       code == -ETOOMANYREFS;
}

/* What the queue waits for is the last one. */
static bool is_awaited(const struct isolated *p, size_t at)
{
	return p->holds_queue && at + 1 == p->holdings.n;
}

/* The targets are tried again (isolated_arm). */
static void await_room(struct isolated *p, int code)
{
	if (!p->short_to)
		log_printf(&p->instance->host->log, ANDIRON_LOG_WARN, p->instance->name,
			   "targets cannot be passed to its process, and wait: %s",
			   strerror(-code));
	p->short_to = true;
}

/* A batch, or (NULL) the targets that wait. 1: it could not be handed over, and is gone. */
static int give(struct isolated *p, struct holding *h)
{
	struct isolate_message m = {.type = ISOLATE_BATCH, .number = p->number + 1};
	_cleanup_(closep) int fd = -1;
	int r = h ? memory_of_batch(h->batch, &fd) : memory_of_bytes(buf_str(&p->targets), &fd);
	int sent = r == 0 ? isolate_put(p->socket, &m, fd, false) : r;

	if (h && (r < 0 || is_shortage(sent))) {
		holdings_unhanded(p, sent, h->left, &p->short_to);
		p->lost |= is_awaited(p, (size_t)(h - p->holdings.p));
		take_off(p, (size_t)(h - p->holdings.p));
		return 1;
	}
	if (is_shortage(sent)) {
		await_room(p, sent);
		return 0;
	}
	if (sent < 0)
		return sent;
	p->short_to = false;
	if (h) {
		h->given = true;
		p->given += h->batch->samples;
	} else {
		buf_free(&p->targets);
	}
	p->number++;
	p->n_asked++;
	p->in_hand = true;
	p->due_ns = clock_mono() + p->instance->host->options.isolate_call_ns;
	return 0;
}

static int tell_drain(struct isolated *p)
{
	int64_t left = p->instance->deadline_ns - clock_mono();
	/* So that what it says of its end is heard before ours. */
	int64_t margin = left / 8 < NS_PER_SEC ? left / 8 : NS_PER_SEC;
	struct isolate_message m = {.type = ISOLATE_DRAIN};

	p->told = true;
	if (left > 0)
		m.number = (uint64_t)(left - margin);
	return isolate_put(p->socket, &m, -1, false);
}

int holdings_pump(struct isolated *p)
{
	struct holding *h;
	int r = 1;

	if (p->socket < 0 || !p->ready || p->in_hand)
		return 0;
	while (r == 1 && ((h = next(p)) || p->targets.n))
		r = give(p, h);
	if (r < 1)
		; /* it has one, or is broken */
	else if (p->holds_queue) {
		p->holds_queue = false;
		queue_resume(p->instance, p->lost);
		p->lost = false;
		r = 0;
	} else {
		r = p->drains && !p->told ? tell_drain(p) : 0;
	}
	holdings_show(p);
	return r;
}

static void drop(struct isolated *p, size_t at, struct str reason)
{
	isolated_count(p, ANDIRON_LEDGER_DROPPED, reason, p->holdings.p[at].left);
	p->n_lost++;
	take_off(p, at);
}

void holdings_lose(struct isolated *p, struct str reason)
{
	size_t n_given = 0;

	isolated_count(p, ANDIRON_LEDGER_DROPPED, reason, p->forgotten);
	p->forgotten = 0;
	take_off_settled(p);
	while (n_given < p->holdings.n && p->holdings.p[n_given].given)
		n_given++;
	if (n_given && p->holdings.p[0].left < p->holdings.p[0].batch->samples) {
		drop(p, 0, reason);
	} else if (n_given) {
		p->lost |= p->in_hand && is_awaited(p, n_given - 1);
		drop(p, n_given - 1, reason);
	}
	vec_each (&p->holdings, h)
		h->given = false;
	p->in_hand = false;
}

void holdings_clear(struct isolated *p, struct str reason)
{
	isolated_count(p, ANDIRON_LEDGER_DROPPED, reason, p->forgotten);
	p->forgotten = 0;
	while (p->holdings.n) {
		isolated_count(p, ANDIRON_LEDGER_DROPPED, reason, p->holdings.p[0].left);
		take_off(p, 0);
	}
	p->in_hand = false;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What the process says. All of it is a stranger's: each message is checked, and how much it may
 * say is bounded. Contract in isolated-private.h. */
#include "host/isolate/isolated-private.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "host/isolate/batch-memory.h"
#include "host/isolate/target-bytes.h"
#include "host/registry/describe-check.h"
#include "host/services/callbacks.h"
#include "host/services/services.h"

#include <errno.h>
#include <string.h>

#define AT_ONCE      64 /* messages that are read before others have their turn */
#define TURN_BYTES   ((uint64_t)16 << 20) /* and targets, with what their rows take */
#define WINDOW_NS    (10 * NS_PER_SEC)
#define MAX_MESSAGES 20000 /* in it, of one process, beside what answers batches */
#define MAX_LINES    50    /* that are logged of them */

/* How often this word was counted before. */
static uint64_t known(const struct isolate_counts *c, const char *reason)
{
	for (size_t i = 0; i < c->n_reasons; i++)
		if (strcmp(c->dropped[i].word, reason) == 0)
			return c->dropped[i].samples;
	return 0;
}

static bool is_rise(const struct isolate_counts *from, const struct isolate_counts *to)
{
	if (to->delivered < from->delivered || to->carried < from->carried)
		return false;
	for (size_t i = 0; i < to->n_reasons; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(to->dropped[i].word, to->dropped[k].word) == 0)
				return false;
	for (size_t i = 0; i < from->n_reasons; i++)
		if (known(to, from->dropped[i].word) < from->dropped[i].samples)
			return false;
	return true;
}

static uint64_t beyond(uint64_t n, uint64_t part)
{
	return n > part ? n - part : 0;
}

static void show_store(struct isolated *p)
{
	struct ledger *l = &p->instance->host->ledger;

	ledger_level(l, &p->instance->ledger_node, ANDIRON_LEDGER_SPOOLED, p->counts.spooled);
	ledger_level(l, &p->instance->ledger_node, ANDIRON_LEDGER_UNCERTAIN, p->counts.uncertain);
}

/* Levels are no more than what it has: a moment's excess, or a lie. */
static void clamp_levels(const struct isolated *p, struct isolate_counts *c)
{
	uint64_t left = beyond(p->given + c->carried, isolated_out(p, c));

	if (c->spooled > left)
		c->spooled = left;
	if (c->uncertain > left - c->spooled)
		c->uncertain = left - c->spooled;
}

/* Levels may be ahead of sums or behind them for a moment. */
static void settle(struct isolated *p)
{
	const struct isolate_counts *c = &p->counts;
	uint64_t n = beyond(isolated_out(p, c) + c->spooled + c->uncertain, c->carried);

	n = n < p->given ? n : p->given;
	holdings_settle(p, beyond(n, p->settled));
}

/* Whether it has settled no more samples than it was given and has found. */
static bool is_possible(const struct isolated *p, const struct isolate_counts *c)
{
	return isolated_out(p, c) <= p->given + c->carried;
}

static int on_counts(struct isolated *p, struct str text)
{
	struct isolate_counts c, was = p->counts;

	if (!isolate_counts_get(text, &c) || !is_rise(&was, &c) || !is_possible(p, &c))
		return -EBADMSG;
	if (!p->forwards)
		isolated_count(p, ANDIRON_LEDGER_DELIVERED, STR_NULL, c.delivered - was.delivered);
	isolated_count(p, ANDIRON_LEDGER_CARRIED, STR_NULL,
		       beyond(c.carried, p->left) - beyond(was.carried, p->left));
	for (size_t i = 0; i < c.n_reasons; i++)
		isolated_count(p, ANDIRON_LEDGER_DROPPED, str_of(c.dropped[i].word),
			       c.dropped[i].samples - known(&was, c.dropped[i].word));
	clamp_levels(p, &c);
	p->counts = c;
	settle(p);
	if (p->ready)
		show_store(p);
	holdings_show(p);
	return 0;
}

/* The first one gets them as any component does. */
static void request_targets(struct isolated *p)
{
	const struct andiron_option *o;

	buf_free(&p->targets);
	for (uint32_t i = 0; (o = option_at(p->of->options, i)); i++)
		if (o->type == ANDIRON_TYPE_TARGETS)
			host_services.request_targets(p->instance->id, o->name);
}

/* What the last one had in its store and this one has not found there is lost. */
static int on_ready(struct isolated *p, const struct isolate_message *m)
{
	if (p->ready)
		return -EBADMSG;
	if (m->number) {
		snprintf(p->why, sizeof(p->why), "%.*s", STR_FMT(str_first(m->text, 390)));
		return m->number < 4096 ? -(int)m->number : -EBADMSG;
	}
	p->ready = true;
	isolated_count(p, ANDIRON_LEDGER_DROPPED, STR("isolate_died"),
		       beyond(p->left, p->counts.carried));
	if (p->left > p->counts.carried)
		p->left = p->counts.carried;
	show_store(p);
	if (p->n_starts > 1) {
		instance_health(p->instance, ANDIRON_HEALTH_HEALTHY,
				STR("running, in another process"));
		request_targets(p);
	}
	return holdings_pump(p);
}

static int on_done(struct isolated *p, uint64_t number)
{
	if (!p->in_hand || number != p->number)
		return -EBADMSG;
	p->in_hand = false;
	holdings_settle(p, 0);
	return holdings_pump(p);
}

/* The batch whose objects it may name: the one that was given last. */
static const struct andiron_batch *given_last(const struct isolated *p)
{
	for (size_t i = p->holdings.n; i > 0; i--)
		if (p->holdings.p[i - 1].given)
			return p->holdings.p[i - 1].batch;
	return NULL;
}

static bool may_pass(const struct isolated *p, uint64_t samples)
{
	return !p->forwards ? samples == 0
			    : samples <= p->given &&
				      isolated_out(p, &p->counts) + samples <= p->given;
}

/* What has gone on is in no store any more, whether or not the process has said so. */
static void pass(struct isolated *p, uint64_t samples)
{
	p->passed += samples;
	clamp_levels(p, &p->counts);
	settle(p);
	if (p->ready)
		show_store(p);
	holdings_show(p);
}

static uint64_t *heard_of(struct isolated *p, const char *export_name)
{
	for (uint64_t i = 0; i < p->of->n_exports; i++)
		if (strcmp(p->of->exports[i].name, export_name) == 0)
			return &p->heard[i];
	return NULL;
}

/* Its host has a number for the component of its own. Rows that it adds and never removes would add
 * up here: so it has to begin each list again with a snapshot. */
static int send_targets(struct isolated *p, const struct andiron_batch *batch)
{
	struct str bytes = {0};
	struct andiron_targets *update;
	uint64_t *heard, more;

	if (batch->n_segments)
		bytes = (struct str){batch->segments->base, batch->segments->size};
	update = target_bytes_get(&bytes);
	heard = update ? heard_of(p, bytes.p) : NULL;
	if (!heard)
		return -EBADMSG;
	more = batch->bytes + target_bytes_rows(update);
	if (update->flags & ANDIRON_TARGETS_SNAPSHOT)
		*heard = 0;
	*heard += more;
	p->taken += more;
	if (*heard > ISOLATE_MAX_ROWS)
		return -EBADMSG;
	update->producer = p->instance->id;
	update->owner = batch->owner;
	update->retain = batch->retain;
	update->release = batch->release;
	return host_services.send_targets(p->instance->id, bytes.p, update);
}

static int on_send(struct isolated *p, const struct isolate_message *m, int fd)
{
	const struct andiron_batch *batch;
	int r = -EBADMSG;

	if (!may_pass(p, m->number))
		return r;
	if (m->fd_lost)
		r = -EMFILE;
	else if (fd >= 0)
		r = memory_batch(fd, given_last(p), &batch);
	if ((r == -EMFILE || r == -ENOMEM) && p->forwards) { /* nothing is wrong with it */
		holdings_unhanded(p, r, m->number, &p->short_from);
		pass(p, m->number);
		return 0;
	}
	if (r < 0)
		return r;
	if (batch->samples != m->number)
		r = -EBADMSG;
	else if (!p->forwards)
		r = send_targets(p, batch);
	else { /* one that is refused was counted as dropped there */
		r = host_services.send_batch(p->instance->id, batch);
		pass(p, m->number);
	}
	batch->release(batch->owner);
	p->short_from &= r < 0;
	return r == -EINVAL ? -EBADMSG : r;
}

static int on_log(struct isolated *p, const struct isolate_message *m)
{
	struct log *log = &p->instance->host->log;
	uint64_t level = m->number <= ANDIRON_LOG_DEBUG ? m->number : ANDIRON_LOG_DEBUG;

	if (p->n_lines++ < MAX_LINES)
		log_write(log, (uint32_t)level, str_of(p->instance->name), m->text, NULL, 0);
	else if (p->n_lines == MAX_LINES + 1)
		log_printf(log, ANDIRON_LOG_WARN, p->instance->name,
			   "its process says too much: more lines are left out for some seconds");
	return 0;
}

static int on_metrics(struct isolated *p, struct str text)
{
	buf_clear(&p->metrics);
	return buf_str_append(&p->metrics, text) == -ENOMEM ? -ENOMEM : 0;
}

static int on_health(struct isolated *p, const struct isolate_message *m)
{
	uint32_t before;

	if (m->number > ANDIRON_HEALTH_EXITED || m->text.n >= HEALTH_BYTES)
		return -EBADMSG;
	/* Its own host has logged it, and so it came as a line. */
	instance_note_health(p->instance, (uint32_t)m->number, m->text, &before);
	return 0;
}

static int on_ended(struct isolated *p)
{
	if (!p->told)
		return -EBADMSG;
	p->ended = true;
	calls_watch_remove(p->instance, p->watch); /* it closes its end now */
	p->watch = 0;
	host_services.drained(p->instance->id);
	return 0;
}

static int handle(struct isolated *p, const struct isolate_message *m, int fd)
{
	switch (m->type) {
	case ISOLATE_READY:
		return on_ready(p, m);
	case ISOLATE_DONE:
		return on_done(p, m->number);
	case ISOLATE_COUNTS:
		return on_counts(p, m->text);
	case ISOLATE_HEALTH:
		return on_health(p, m);
	case ISOLATE_LOG:
		return on_log(p, m);
	case ISOLATE_METRICS:
		return on_metrics(p, m->text);
	case ISOLATE_SEND:
		return on_send(p, m, fd);
	case ISOLATE_FULL:
		host_services.full(p->instance->id, m->number != 0);
		return 0;
	case ISOLATE_ENDED:
		return on_ended(p);
	default:
		return -EBADMSG;
	}
}

static bool is_too_much(struct isolated *p)
{
	int64_t now = clock_mono();

	if (now - p->window_ns > WINDOW_NS) {
		p->window_ns = now;
		p->n_messages = p->n_lines = p->n_asked = 0;
	}
	return p->n_messages++ >= MAX_MESSAGES + ISOLATE_ANSWERS * p->n_asked;
}

int isolated_read(struct isolated *p)
{
	int r = 1;

	p->taken = 0;
	for (int n = 0; r == 1 && n < AT_ONCE && p->taken < TURN_BYTES && !p->ended; n++) {
		_cleanup_(closep) int fd = -1;
		struct isolate_message m;

		r = isolate_take(p->socket, p->packet, &m, &fd);
		if (r == 1 && is_too_much(p))
			return -EBADMSG;
		if (r == 1) {
			int handled = handle(p, &m, fd);

			if (handled < 0)
				return handled;
		}
	}
	return r < 0 ? r : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The writer between the host, the store and the endpoints. A batch is on disk, where there is a
 * spool, before anything of it is sent. */
#include "pyroscope-push/writer.h"

#include "base/check.h"
#include "base/clock.h"
#include "client/loop.h"
#include "pyroscope-push/fullness.h"
#include "base/vec.h"

#include <andiron/status.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

struct gone {
	uint64_t endpoint, sequence;
	uint32_t what;
};

struct writer {
	struct abi_context context;
	struct push_config *config;
	struct client_loop *loop; /* NULL: not started, or stopped */
	struct endpoint **endpoints;
	size_t n_endpoints;
	struct uploads *uploads; /* NULL: not started, or the server asks for no files */
	struct store store;
	VEC(struct record *) found; /* in the spool, while it is being opened */
	VEC(struct gone) gone;      /* of these, what is settled by that */
	struct times times;
	struct series_repairs repairs;
	uint64_t drain_timer, keep_timer;
	struct andiron_extension status; /* andiron.status/1, NULL: the host has none */
	bool draining, full;             /* full: the host was told so */
	uint64_t advised[SERIES_N_LOSSES];
};

static void on_settled(void *context, struct record *r, enum outcome outcome, const char *reason)
{
	store_settle(&((struct writer *)context)->store, r, outcome, reason);
}

static int on_mark(void *context, uint64_t endpoint, uint32_t what, const uint64_t *sequences,
		   size_t n)
{
	struct writer *w = context;
	int rc = store_mark(&w->store, endpoint, what, sequences, n);
	/* Before it is sent; and before the disk can end what is known of it. Where a re-send does
	 * no harm, the next batch's sync is soon enough. */
	bool sync = !w->config->protocol->idempotent &&
		    (what == SPOOL_SENT || what == SPOOL_UNSENT);

	return rc == 0 && sync ? store_sync(&w->store) : rc;
}

static int on_load(void *context, struct record *r)
{
	return store_load(&((struct writer *)context)->store, r);
}

static void on_unload(void *context, struct record *r)
{
	struct writer *w = context;

	if (w->store.cached > STORE_CACHE_BYTES)
		store_unload(&w->store, r);
}

static void on_set_aside(void *context, const struct record *r)
{
	store_set_aside(&((struct writer *)context)->store, r);
}

static void end_drain(struct writer *w)
{
	check(w->draining);
	w->draining = false;
	if (w->drain_timer)
		w->context.host->timer_cancel(w->context.instance, w->drain_timer);
	w->drain_timer = 0;
	w->context.host->drained(w->context.instance);
}

static void on_changed(void *context)
{
	struct writer *w = context;
	const char *trouble = store_trouble(&w->store);
	const struct endpoint *bad = NULL;

	fullness_tell(&w->store, w->endpoints, w->n_endpoints, &w->full);
	for (size_t i = 0; i < w->n_endpoints && !bad; i++)
		if (endpoint_cause(w->endpoints[i]))
			bad = w->endpoints[i];
	if (bad)
		abi_health(&w->context, ANDIRON_HEALTH_UNHEALTHY, "%s: %s%s%s",
			   endpoint_options(bad)->name, endpoint_cause(bad),
			   trouble ? "; and memory alone holds what is new: " : "",
			   trouble ? trouble : "");
	else if (trouble)
		abi_health(&w->context, ANDIRON_HEALTH_UNHEALTHY,
			   "all endpoints deliver, but memory alone holds what waits: %s", trouble);
	else if (w->n_endpoints)
		abi_health(&w->context, ANDIRON_HEALTH_HEALTHY, "all endpoints deliver");
	if (w->draining && store_held(&w->store) == 0)
		end_drain(w);
}

static void on_lose(void *context, struct record *r)
{
	store_lose_place(&((struct writer *)context)->store, r);
}

static void on_evicted(void *context, uint64_t segment)
{
	struct writer *w = context;

	for (size_t i = 0; i < w->n_endpoints; i++)
		endpoint_evict(w->endpoints[i], segment, on_lose, w);
}

/* Whether an id is among these. */
static bool has(const uint64_t *ids, size_t n, uint64_t id)
{
	for (size_t i = 0; i < n; i++)
		if (ids[i] == id)
			return true;
	return false;
}

/* It is settled for that endpoint, which is not here to do so. */
static void give_up_for(struct writer *w, uint64_t endpoint, uint64_t sequence, uint32_t what)
{
	if (!vec_push(&w->gone, ((struct gone){endpoint, sequence, what})))
		abi_log(&w->context, ANDIRON_LOG_WARN,
			"memory is short: a profile of an earlier run is counted again in the "
			"next");
}

/* The position of the endpoint with that id, or n_endpoints. */
static size_t endpoint_at(const struct push_config *c, uint64_t id)
{
	size_t i = 0;

	while (i < c->n_endpoints && c->endpoints[i].id != id)
		i++;
	return i;
}

/* A record that an earlier run left. Where it went out without an answer having come, and would
 * count twice, it is not sent again. */
static void on_found(void *context, const struct spool_found *found)
{
	struct writer *w = context;
	const struct push_config *c = w->config;
	struct record *r = calloc(1, sizeof(*r));

	if (r && !vec_push(&w->found, r)) {
		free(r);
		r = NULL;
	}
	if (!r) { /* it stays in the spool, for a run with more memory */
		abi_log(&w->context, ANDIRON_LOG_WARN,
			"memory is short: a profile of an earlier run waits for the next one");
		return;
	}
	r->place = found->place;
	r->samples = found->samples;
	r->raw_bytes = found->raw_bytes;
	r->size = found->size;
	r->time_ns = found->time_ns;
	r->uncertain = found->uncertain;
	for (size_t i = 0; i < found->n_endpoints; i++) {
		uint64_t id = found->endpoints[i];
		size_t at = endpoint_at(c, id);
		bool here = at < c->n_endpoints;
		bool again = here && (c->protocol->idempotent || c->endpoints[at].at_least_once);
		bool sent = has(found->sent, found->n_sent, id);

		r->uncertain |= sent && !again;
		if (here && (again || !sent)) {
			r->owed |= UINT64_C(1) << at;
			r->unanswered |= (uint64_t)sent << at;
		} else {
			give_up_for(w, id, r->place.sequence,
				    sent ? SPOOL_UNCERTAIN : SPOOL_SETTLED);
		}
	}
}

int writer_new(const struct abi_context *context, struct push_config *config, struct writer **ret)
{
	struct writer *w = calloc(1, sizeof(*w));
	uint64_t seed = 0;

	if (!w)
		return -ENOMEM;
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
		seed = (uint64_t)clock_real();
	w->context = *context;
	w->config = config;
	w->times = times_init(seed);
	store_init(&w->store, context,
		   &(struct store_options){config->spool_directory, config->protocol->component,
					   config->spool_bytes},
		   &(struct spool_events){w, on_found, on_evicted});
	*ret = w;
	return 0;
}

void writer_free(void *self)
{
	struct writer *w = self;

	if (!w)
		return;
	writer_stop(w);
	push_config_release(w->config);
	free(w);
}

static void free_endpoints(struct endpoint **endpoints, size_t n, const char *reason)
{
	for (size_t i = 0; i < n; i++)
		endpoint_free(endpoints[i], reason);
	free(endpoints);
}

/* As many new endpoints as the config has; NULL when memory is short. */
static struct endpoint **make_endpoints(struct writer *w, struct push_config *config)
{
	struct endpoint_events events = {w,         on_settled,   on_mark,   on_load,
					 on_unload, on_set_aside, on_changed};
	struct endpoint **all = calloc(config->n_endpoints + 1, sizeof(*all));

	for (size_t i = 0; all && i < config->n_endpoints; i++) {
		all[i] = endpoint_new(&w->context, client_loop_http(w->loop), &events, config, i);
		if (!all[i]) {
			free_endpoints(all, i, NULL);
			return NULL;
		}
	}
	return all;
}

/* What an earlier run left goes to those that have yet to settle it. */
static void push_found(struct writer *w)
{
	vec_each (&w->found, at) {
		struct record *r = *at;
		uint64_t owed = r->owed;

		r->n_unsettled = (uint32_t)__builtin_popcountll(owed) + 1; /* one is ours */
		store_carry(&w->store, r);
		for (size_t i = 0; i < w->n_endpoints; i++)
			if (owed >> i & 1)
				endpoint_push(w->endpoints[i], r, r->unanswered >> i & 1);
	}
	vec_each (&w->gone, g)
		store_mark(&w->store, g->endpoint, g->what, &g->sequence, 1);
	vec_each (&w->found, at) {
		struct record *r = *at;

		if (r->owed || r->uncertain)
			store_settle(&w->store, r,
				     r->uncertain ? OUTCOME_UNCERTAIN : OUTCOME_DELIVERED, NULL);
		else
			store_settle(&w->store, r, OUTCOME_DROPPED, "endpoint_removed");
	}
	vec_free(&w->found);
	vec_free(&w->gone);
	for (size_t i = 0; i < w->n_endpoints; i++)
		endpoint_flush(w->endpoints[i]);
}

static void open_store(struct writer *w)
{
	store_open(&w->store);
	if (w->store.spool)
		times_resume(&w->times, spool_last_time(w->store.spool));
	push_found(w);
}

static uint64_t on_coming(void *context, uint64_t *ret_dropped)
{
	const struct writer *w = context;
	const struct andiron_status *status = w->status.table;

	return status->upstream(w->status.self, w->context.instance, ret_dropped);
}

static void on_keep(void *arg)
{
	store_keep(&((struct writer *)arg)->store);
}

/* What a kill would cost is kept beside the spool, as of the last second. */
static void begin_keeping(struct writer *w)
{
	const struct andiron_host *host = w->context.host;

	if (!w->config->spool_directory)
		return;
	if (host->extension(w->context.instance, ANDIRON_STATUS_ID, &w->status) == 0) {
		w->store.coming = on_coming;
		w->store.coming_context = w;
	}
	if (host->timer_set(w->context.instance, NS_PER_SEC, NS_PER_SEC, on_keep, w,
			    &w->keep_timer))
		w->keep_timer = 0; /* every batch keeps, too */
}

int writer_start(struct writer *w, struct error *err)
{
	int rc;

	check(!w->loop && !w->endpoints);
	rc = client_loop_start(&w->context, &w->loop, err);
	if (rc)
		return rc;
	w->endpoints = make_endpoints(w, w->config);
	if (!w->endpoints)
		return -ENOMEM;
	w->n_endpoints = w->config->n_endpoints;
	if (w->config->protocol->debuginfo) {
		w->uploads = uploads_new(&w->context, client_loop_http(w->loop), w->config);
		if (!w->uploads)
			return -ENOMEM;
	}
	abi_health(&w->context, ANDIRON_HEALTH_HEALTHY, "ready to send to %zu endpoint%s",
		   w->n_endpoints, w->n_endpoints == 1 ? "" : "s");
	begin_keeping(w);
	open_store(w);
	return 0;
}

/* Puts an old endpoint in the place of the fresh one. */
static void keep(struct writer *w, struct push_config *config, struct endpoint **fresh, size_t at,
		 size_t old)
{
	check(fresh[at] && w->endpoints[old]);
	endpoint_free(fresh[at], NULL);
	fresh[at] = w->endpoints[old];
	w->endpoints[old] = NULL;
	endpoint_configure(fresh[at], config, at);
}

static bool same_spool(const struct push_config *a, const struct push_config *b)
{
	return str_eq(str_of(a->spool_directory), str_of(b->spool_directory)) &&
	       a->spool_bytes == b->spool_bytes;
}

/* Endpoints of the same URL go on; where one was changed, the one in its place does. */
static void keep_endpoints(struct writer *w, struct push_config *config, struct endpoint **fresh)
{
	for (size_t i = 0; i < config->n_endpoints; i++)
		for (size_t k = 0; k < w->n_endpoints; k++)
			if (w->endpoints[k] &&
			    endpoint_options(w->endpoints[k])->id == config->endpoints[i].id) {
				keep(w, config, fresh, i, k);
				break;
			}
	for (size_t i = 0; i < config->n_endpoints && i < w->n_endpoints; i++)
		if (w->endpoints[i] && endpoint_is_idle(fresh[i]) &&
		    endpoint_counts(fresh[i])->requests == 0)
			keep(w, config, fresh, i, i);
}

int writer_update(struct writer *w, struct push_config *config, struct error *err)
{
	struct endpoint **fresh;
	size_t n = config->n_endpoints;

	if (!same_spool(w->config, config))
		return error_set(err, -EINVAL,
				 "spool: another directory or size needs a restart of the agent");
	if (!w->loop) {
		push_config_release(w->config);
		w->config = config;
		return 0;
	}
	fresh = make_endpoints(w, config);
	if (!fresh)
		return -ENOMEM;
	keep_endpoints(w, config, fresh);
	free_endpoints(w->endpoints, w->n_endpoints, "endpoint_removed");
	w->endpoints = fresh;
	w->n_endpoints = n;
	push_config_release(w->config);
	w->config = config;
	if (w->uploads)
		uploads_configure(w->uploads, config);
	for (size_t i = 0; i < n; i++)
		endpoint_flush(w->endpoints[i]);
	return 0;
}

/* The ids of the endpoints whose bit is set; how many. */
static size_t ids_of(const struct writer *w, uint64_t owed, uint64_t *out)
{
	size_t n = 0;

	for (size_t i = 0; i < w->n_endpoints; i++)
		if (owed >> i & 1)
			out[n++] = endpoint_options(w->endpoints[i])->id;
	return n;
}

static void on_record(void *context, struct record *r)
{
	struct writer *w = context;
	uint64_t ids[SPOOL_MAX_ENDPOINTS];

	check(w->n_endpoints > 0 && w->n_endpoints <= SPOOL_MAX_ENDPOINTS);
	store_add(&w->store, r, ids, ids_of(w, UINT64_MAX, ids));
	for (size_t i = 0; i < w->n_endpoints; i++)
		endpoint_push(w->endpoints[i], r, false);
}

/* A spool that could not be opened before may be there now. */
static void retry_store(struct writer *w)
{
	if (store_is_due(&w->store))
		open_store(w);
}

/* Advice once: whoever sends such a profile sends many. */
static void lose(struct writer *w, enum series_loss loss, uint64_t samples)
{
	store_drop(&w->store, series_loss_word(loss), samples);
	if (series_loss_advice(loss) && w->advised[loss]++ == 0)
		abi_log(&w->context, ANDIRON_LOG_WARN, "%s", series_loss_advice(loss));
}

void writer_batch(void *self, const struct andiron_batch *batch)
{
	struct writer *w = self;
	struct series_encoder encoder = {
		.protocol = w->config->protocol,
		.addresses = w->config->addresses,
		.rules = {.renames = w->config->protocol->renames,
			  .defaults = &w->config->node,
			  .n_defaults = w->config->node.name.n > 0,
			  .external = w->config->external,
			  .n_external = w->config->n_external},
		.times = &w->times,
		.now_ns = clock_real(),
		.emit = on_record,
		.context = w,
		.repairs = &w->repairs,
	};
	uint64_t lost[SERIES_N_LOSSES];
	struct batch_view view;

	if (!w->n_endpoints) {
		store_drop(&w->store, w->loop ? "no_endpoint" : "stopped", batch->samples);
		return;
	}
	retry_store(w);
	store_begin(&w->store, batch->samples);
	series_encode(&encoder, batch, lost);
	for (enum series_loss i = 0; i < SERIES_N_LOSSES; i++)
		if (lost[i])
			lose(w, i, lost[i]);
	store_end(&w->store);
	for (size_t i = 0; i < w->n_endpoints; i++)
		endpoint_flush(w->endpoints[i]);
	fullness_tell(&w->store, w->endpoints, w->n_endpoints, &w->full);
	if (w->uploads && batch_view_init(&view, batch) == 0)
		uploads_see(w->uploads, &view);
	on_changed(w);
}

static void clear_owed(void *context, struct record *r)
{
	r->owed = 0;
}

static void set_owed(void *context, struct record *r)
{
	r->owed |= *(const uint64_t *)context;
}

static void rescue(void *context, struct record *r)
{
	struct writer *w = context;
	uint64_t ids[SPOOL_MAX_ENDPOINTS];

	if (!record_is_spooled(r))
		store_rescue(&w->store, r, ids, ids_of(w, r->owed, ids));
}

/* What is held and can be goes into the spool, the rest is dropped. */
static void leave_all(struct writer *w, const char *reason)
{
	for (size_t i = 0; i < w->n_endpoints; i++)
		endpoint_each(w->endpoints[i], clear_owed, NULL);
	for (size_t i = 0; i < w->n_endpoints; i++)
		endpoint_each(w->endpoints[i], set_owed, &(uint64_t){UINT64_C(1) << i});
	for (size_t i = 0; i < w->n_endpoints; i++)
		endpoint_each(w->endpoints[i], rescue, w);
	store_sync(&w->store);
	for (size_t i = 0; i < w->n_endpoints; i++)
		endpoint_leave(w->endpoints[i], reason, true);
}

static void on_deadline(void *arg)
{
	struct writer *w = arg;

	w->drain_timer = 0;
	leave_all(w, "deadline");
	end_drain(w);
}

int32_t writer_drain(void *self, int64_t deadline_ns)
{
	struct writer *w = self;

	w->draining = true;
	if (deadline_ns <= 0 || w->context.host->timer_set(w->context.instance, deadline_ns, 0,
							   on_deadline, w, &w->drain_timer) != 0) {
		on_deadline(w);
		return 0;
	}
	for (size_t i = 0; i < w->n_endpoints; i++)
		endpoint_hurry(w->endpoints[i]);
	if (store_held(&w->store) == 0)
		end_drain(w);
	return 0;
}

void writer_stop(void *self)
{
	struct writer *w = self;

	if (!w->loop)
		return;
	if (w->drain_timer)
		w->context.host->timer_cancel(w->context.instance, w->drain_timer);
	if (w->keep_timer)
		w->context.host->timer_cancel(w->context.instance, w->keep_timer);
	w->drain_timer = w->keep_timer = 0;
	leave_all(w, "stopped");
	free_endpoints(w->endpoints, w->n_endpoints, NULL);
	w->endpoints = NULL;
	w->n_endpoints = 0;
	uploads_free(w->uploads);
	w->uploads = NULL;
	check(w->store.in_flight == 0);
	store_fini(&w->store);
	client_loop_free(w->loop);
	w->loop = NULL;
}

const struct client_loop *writer_loop(const struct writer *w)
{
	return w->loop;
}

const struct protocol *writer_protocol(const struct writer *w)
{
	return w->config->protocol;
}

const struct andiron_host *writer_host(const struct writer *w)
{
	return w->context.host;
}

uint64_t writer_spool_bytes(const struct writer *w, uint64_t *ret_max)
{
	if (ret_max)
		*ret_max = w->store.spool ? w->config->spool_bytes : 0;
	return w->store.spool ? spool_bytes(w->store.spool) : 0;
}

const struct series_repairs *writer_repairs(const struct writer *w)
{
	return &w->repairs;
}

const struct uploads_counts *writer_uploads(const struct writer *w)
{
	return w->uploads ? uploads_counts(w->uploads) : NULL;
}

size_t writer_n_endpoints(const struct writer *w)
{
	return w->n_endpoints;
}

const struct endpoint *writer_endpoint(const struct writer *w, size_t i)
{
	check(i < w->n_endpoints);
	return w->endpoints[i];
}

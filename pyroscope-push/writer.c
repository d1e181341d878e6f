/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer between the host and its endpoints. `held` is the sum of samples
 * over all records that some endpoint has not settled: the ledger's level of
 * what is in flight. It changes only where a record is made and where its
 * last endpoint settles it.
 */
#include "writer.h"

#include "base/check.h"
#include "base/clock.h"
#include "client/loop.h"
#include "series.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

struct writer {
	struct abi_context context;
	struct push_config *config;
	struct client_loop *loop; /* NULL: not started, or stopped */
	struct endpoint **endpoints;
	size_t n_endpoints;
	struct times times;
	struct series_repairs repairs;
	uint64_t held;
	uint64_t drain_timer;
	bool draining;
};

static void count(struct writer *w, const char *dropped, uint64_t samples)
{
	abi_ledger(&w->context, dropped ? ANDIRON_LEDGER_DROPPED : ANDIRON_LEDGER_DELIVERED,
		   dropped, samples);
}

static void hold(struct writer *w, uint64_t held)
{
	w->held = held;
	w->context.host->ledger_set(w->context.instance, ANDIRON_LEDGER_IN_FLIGHT, held);
}

/* An endpoint is done with a record; the last one of them ends it. */
static void on_settled(void *context, struct record *r, const char *dropped)
{
	struct writer *w = context;

	check(r->n_unsettled > 0 && w->held >= r->samples);
	if (dropped && !r->dropped)
		r->dropped = dropped;
	if (--r->n_unsettled)
		return;
	hold(w, w->held - r->samples);
	count(w, r->dropped, r->samples);
	record_free(r);
}

static void end_drain(struct writer *w)
{
	check(w->draining && w->held == 0);
	w->draining = false;
	if (w->drain_timer)
		w->context.host->timer_cancel(w->context.instance, w->drain_timer);
	w->drain_timer = 0;
	w->context.host->drained(w->context.instance);
}

static void on_changed(void *context)
{
	struct writer *w = context;

	for (size_t i = 0; i < w->n_endpoints; i++)
		if (endpoint_cause(w->endpoints[i])) {
			abi_health(&w->context, ANDIRON_HEALTH_UNHEALTHY, "%s: %s",
				   endpoint_name(w->endpoints[i]), endpoint_cause(w->endpoints[i]));
			break;
		} else if (i + 1 == w->n_endpoints) {
			abi_health(&w->context, ANDIRON_HEALTH_HEALTHY, "all endpoints deliver");
		}
	if (w->draining && w->held == 0)
		end_drain(w);
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
	*ret = w;
	return 0;
}

void writer_free(struct writer *w)
{
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
	struct endpoint_events events = {w, on_settled, on_changed};
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

int writer_start(struct writer *w, struct error *err)
{
	int rc;

	check(!w->loop);
	rc = client_loop_new(&w->context, &w->loop, err);
	if (rc)
		return rc;
	w->endpoints = make_endpoints(w, w->config);
	if (!w->endpoints)
		return -ENOMEM;
	w->n_endpoints = w->config->n_endpoints;
	abi_health(&w->context, ANDIRON_HEALTH_HEALTHY, "ready to send to %zu endpoints",
		   w->n_endpoints);
	return 0;
}

/* Puts an old endpoint in the place of the fresh one. */
static void keep(struct writer *w, struct push_config *config, struct endpoint **fresh, size_t at,
		 size_t old)
{
	endpoint_free(fresh[at], NULL);
	fresh[at] = w->endpoints[old];
	w->endpoints[old] = NULL;
	endpoint_configure(fresh[at], config, at);
}

int writer_update(struct writer *w, struct push_config *config)
{
	struct endpoint **fresh;
	size_t n = config->n_endpoints;

	if (!w->loop) {
		push_config_release(w->config);
		w->config = config;
		return 0;
	}
	fresh = make_endpoints(w, config);
	if (!fresh)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < w->n_endpoints; k++)
			if (w->endpoints[k] &&
			    strcmp(endpoint_url(w->endpoints[k]), config->endpoints[i].url) == 0) {
				keep(w, config, fresh, i, k);
				break;
			}
	for (size_t i = 0; i < n && i < w->n_endpoints; i++)
		if (w->endpoints[i] && endpoint_is_idle(fresh[i]) &&
		    endpoint_counts(fresh[i])->requests == 0)
			keep(w, config, fresh, i, i);
	free_endpoints(w->endpoints, w->n_endpoints, "endpoint_removed");
	w->endpoints = fresh;
	w->n_endpoints = n;
	push_config_release(w->config);
	w->config = config;
	for (size_t i = 0; i < n; i++)
		endpoint_flush(w->endpoints[i]);
	return 0;
}

static void on_record(void *context, struct record *r)
{
	struct writer *w = context;
	size_t n = w->n_endpoints;

	r->n_unsettled = (uint32_t)n;
	hold(w, w->held + r->samples);
	for (size_t i = 0; i < n; i++)
		endpoint_push(w->endpoints[i], r);
}

void writer_batch(struct writer *w, const struct andiron_batch *batch)
{
	struct series_encoder encoder = {
		.protocol = w->config->protocol,
		.rules = {.external = w->config->external, .n_external = w->config->n_external},
		.times = &w->times,
		.now_ns = clock_real(),
		.emit = on_record,
		.context = w,
		.repairs = &w->repairs,
	};
	uint64_t lost[SERIES_N_LOSSES];

	if (!w->n_endpoints) {
		count(w, w->loop ? "no_endpoint" : "stopped", batch->samples);
		return;
	}
	series_encode(&encoder, batch, lost);
	for (enum series_loss i = 0; i < SERIES_N_LOSSES; i++)
		if (lost[i])
			count(w, series_loss_word(i), lost[i]);
	for (size_t i = 0; i < w->n_endpoints; i++)
		endpoint_flush(w->endpoints[i]);
	on_changed(w);
}

static void on_deadline(void *arg)
{
	struct writer *w = arg;

	w->drain_timer = 0;
	for (size_t i = 0; i < w->n_endpoints; i++)
		endpoint_drop_all(w->endpoints[i], "deadline");
	check(w->held == 0);
	end_drain(w);
}

void writer_drain(struct writer *w, int64_t deadline_ns)
{
	w->draining = true;
	if (deadline_ns <= 0 || w->context.host->timer_set(w->context.instance, deadline_ns, 0,
							   on_deadline, w, &w->drain_timer) != 0) {
		on_deadline(w);
		return;
	}
	for (size_t i = 0; i < w->n_endpoints; i++)
		endpoint_hurry(w->endpoints[i]);
	if (w->held == 0)
		end_drain(w);
}

void writer_stop(struct writer *w)
{
	if (!w->loop)
		return;
	if (w->drain_timer)
		w->context.host->timer_cancel(w->context.instance, w->drain_timer);
	w->drain_timer = 0;
	free_endpoints(w->endpoints, w->n_endpoints, "stopped");
	w->endpoints = NULL;
	w->n_endpoints = 0;
	check(w->held == 0);
	client_loop_free(w->loop);
	w->loop = NULL;
}

const struct series_repairs *writer_repairs(const struct writer *w)
{
	return &w->repairs;
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

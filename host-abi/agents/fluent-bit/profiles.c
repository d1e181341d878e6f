/* SPDX-License-Identifier: Apache-2.0 */
/* See profiles.h. */
#include "agents/fluent-bit/profiles.h"

#include "base/clock.h"
#include "pprof/gzip.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct adding {
	struct profiles *to;
	size_t max;
	bool failed;
};

static void emit(void *context, struct record *record)
{
	struct adding *a = context;
	struct buf request = BUF_NULL;

	if (gzip_inflate(buf_str(&record->message), &request, a->max) != 0 ||
	    !vec_push(&a->to->requests, request)) {
		buf_free(&request);
		a->failed = true;
	}
	record_free(record);
}

int profiles_add(struct profiles *p, struct times *times, const struct andiron_batch *batch)
{
	/* A message says in other words what a pprof of hard_raw bytes does. */
	struct adding a = {.to = p, .max = 4 * protocol_otlp.limits.hard_raw};
	struct series_repairs repairs = {0};
	const struct series_encoder e = {
		.protocol = &protocol_otlp,
		.rules = {.renames = protocol_otlp.renames},
		.times = times,
		.now_ns = clock_real(),
		.emit = emit,
		.context = &a,
		.repairs = &repairs,
	};

	uint64_t n_lost = 0;

	series_encode(&e, batch, p->lost);
	for (size_t i = 0; i < SERIES_N_LOSSES; i++)
		n_lost += p->lost[i];
	if (a.failed || p->lost[SERIES_NO_MEMORY])
		return -ENOMEM;
	return n_lost > 0 && p->requests.n == 0 ? -ENOTSUP : 0;
}

void profiles_free(struct profiles *p)
{
	vec_each (&p->requests, request)
		buf_free(request);
	vec_free(&p->requests);
}

void handover_init(struct handover *h)
{
	pthread_condattr_t clock;

	*h = (struct handover){0};
	pthread_mutex_init(&h->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&h->changed, &clock);
	pthread_condattr_destroy(&clock);
}

void handover_fini(struct handover *h)
{
	pthread_cond_destroy(&h->changed);
	pthread_mutex_destroy(&h->lock);
}

int handover_give(struct handover *h, const struct profiles *p, int64_t patience_ns)
{
	int64_t until = clock_mono() + patience_ns;
	struct timespec at = {until / NS_PER_SEC, until % NS_PER_SEC};
	int r = 0;

	pthread_mutex_lock(&h->lock);
	h->offered = p;
	while (r == 0 && h->offered && !h->closed)
		r = -pthread_cond_timedwait(&h->changed, &h->lock, &at);
	if (!h->offered)
		r = h->result;
	else if (h->closed)
		r = -ESHUTDOWN;
	h->offered = NULL;
	pthread_mutex_unlock(&h->lock);
	return r;
}

void handover_take(struct handover *h, int (*fn)(void *context, const struct profiles *p),
		   void *context)
{
	pthread_mutex_lock(&h->lock);
	if (h->offered) {
		h->result = fn(context, h->offered);
		h->offered = NULL;
		pthread_cond_signal(&h->changed);
	}
	pthread_mutex_unlock(&h->lock);
}

void handover_lose(struct handover *h, const uint64_t lost[SERIES_N_LOSSES])
{
	pthread_mutex_lock(&h->lock);
	for (size_t i = 0; i < SERIES_N_LOSSES; i++)
		h->lost[i] += lost[i];
	pthread_mutex_unlock(&h->lock);
}

void handover_take_lost(struct handover *h, uint64_t ret[SERIES_N_LOSSES])
{
	pthread_mutex_lock(&h->lock);
	memcpy(ret, h->lost, sizeof(h->lost));
	memset(h->lost, 0, sizeof(h->lost));
	pthread_mutex_unlock(&h->lock);
}

void handover_close(struct handover *h)
{
	pthread_mutex_lock(&h->lock);
	h->closed = true;
	pthread_cond_signal(&h->changed);
	pthread_mutex_unlock(&h->lock);
}

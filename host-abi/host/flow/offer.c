/* SPDX-License-Identifier: Apache-2.0 */
/* Offers. Contract in offer.h. */
#include "host/flow/offer.h"

#include "base/check.h"
#include "host/graph/instance.h"
#include "host/state.h"

#include <errno.h>
#include <stdlib.h>

struct offered {
	struct job job;
	struct instance *from;
	andiron_offer_fn fn;
	void *arg;
	atomic_bool dropped; /* by one consumer at least */
	atomic_uint refs; /* consumers that have it, and whoever makes it */
};

static void call(struct job *job)
{
	struct offered *offer = container_of(job, struct offered, job);
	struct instance *from = offer->from;

	offer->fn(offer->arg, atomic_load(&offer->dropped) ? -ECANCELED : 0);
	free(offer);
	instance_unref(from);
}

static struct offered *offer_new(struct instance *from, andiron_offer_fn fn, void *arg)
{
	struct offered *offer = malloc(sizeof(*offer));

	if (offer)
		*offer = (struct offered){.job.light = call,
					  .from = instance_ref(from),
					  .fn = fn,
					  .arg = arg,
					  .refs = 1};
	return offer;
}

static void offer_free(struct offered *offer)
{
	instance_unref(offer->from);
	free(offer);
}

void offer_unref(struct offered *offer, bool dropped)
{
	if (offer && dropped)
		atomic_store(&offer->dropped, true);
	if (!offer || atomic_fetch_sub(&offer->refs, 1) != 1)
		return;
	if (!strand_submit(&offer->from->strand, &offer->job))
		offer_free(offer); /* it has been destroyed */
}

/* Whether all behind this consumer would take so much. The wiring is held. */
static bool room_behind(const struct instance *i, uint64_t bytes)
{
	if (atomic_load(&i->full))
		return false;
	vec_each (&i->receivers, to)
		if (!queue_has_room(*to, bytes) || !room_behind(*to, bytes))
			return false;
	return true;
}

/* Takes room in each queue: 0, or why not, and none is taken then. */
static int reserve(const struct instance *from, const struct andiron_batch *batch,
		   struct queue_item **items)
{
	size_t n = 0;
	int rc = 0;

	for (; n < from->receivers.n && !rc; n++) {
		rc = room_behind(from->receivers.p[n], batch->bytes) ? 0 : -EAGAIN;
		if (!rc)
			rc = queue_reserve(from->receivers.p[n], batch, &items[n]);
	}
	if (rc)
		for (size_t i = 0; i + 1 < n; i++)
			queue_unreserve(from->receivers.p[i], items[i]);
	return rc;
}

int offer_batch(struct instance *from, const struct andiron_batch *batch, andiron_offer_fn fn,
		void *arg)
{
	struct offered *offer = offer_new(from, fn, arg);
	struct queue_item **items;
	int rc;

	if (!offer)
		return -ENOMEM;
	pthread_rwlock_rdlock(&from->host->wiring);
	items = calloc(from->receivers.n + 1, sizeof(struct queue_item *));
	rc = !items ? -ENOMEM : !from->receivers.n ? -ENOTCONN : reserve(from, batch, items);
	if (!rc) { /* before anybody can deliver it */
		ledger_count(&from->host->ledger, &from->ledger_node, ANDIRON_LEDGER_TAKEN,
			     STR_NULL, batch->samples);
		atomic_fetch_add(&from->sent, batch->samples);
	}
	for (size_t i = 0; !rc && i < from->receivers.n; i++) {
		atomic_fetch_add(&offer->refs, 1);
		queue_put_reserved(from->receivers.p[i], items[i], offer);
	}
	pthread_rwlock_unlock(&from->host->wiring);
	free(items);
	if (rc)
		offer_free(offer);
	else
		offer_unref(offer, false);
	return rc;
}

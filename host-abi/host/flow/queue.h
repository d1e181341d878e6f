/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer's queue of batches, bounded in bytes. Putting never blocks: what does not fit is
 * dropped, the newest first, and counted in the ledger as CONSUMER:queue_full, against the writers
 * behind that consumer and no others. Batches are shared by reference. One batch at a time is
 * handed to the component, by one job of its strand, so that other calls get their turn in between.
 */
#pragma once

#include <andiron/batch.h>

#include <stdbool.h>

struct instance;
struct offered;
struct queue_item;

struct queue {
	struct queue_item *first, **tail;
	uint64_t bytes, limit;
	bool open;      /* the consumer is live: items may be handed on */
	bool scheduled; /* its batch job is in the strand, or it is held */
	bool within;    /* `batch` has not returned */
	bool held;
	bool dropped; /* what it was resumed with within `batch` */
	struct queue_item *in_hand; /* of a queue that is held */
	const char *closed;         /* why nothing more is taken, NULL while it is */
};

/* The queue of `consumer`; never fails. */
void queue_init(struct instance *consumer, uint64_t limit);

/* Puts a batch in or drops and counts it. [any], O(1) */
void queue_put(struct instance *consumer, const struct andiron_batch *batch);

/* The same in two steps, for a batch that is to go to all of its consumers or to none (offer.h).
 * The first takes the room: 0 and *ret; -EAGAIN: there is none now; -E2BIG: the queue is smaller
 * than the batch; -ESHUTDOWN: nothing is taken any more; -ENOMEM. The second puts it there, or
 * gives the room back. [any], O(1) */
int queue_reserve(struct instance *consumer, const struct andiron_batch *batch,
		  struct queue_item **ret);
void queue_put_reserved(struct instance *consumer, struct queue_item *item, struct offered *offer);
void queue_unreserve(struct instance *consumer, struct queue_item *item);

/* Whether a batch of that size would be taken now. [any] */
bool queue_has_room(struct instance *consumer, uint64_t bytes);

/* Begins to hand batches to the component. */
void queue_open(struct instance *consumer);

/* Drops what waits, and whatever comes after, for this reason (a constant). The first reason stays.
 */
void queue_close(struct instance *consumer, const char *reason);

/* Within the component's `batch`: nothing more is handed to it, and the batch counts as being
 * processed, until the second says so, in the strand: `dropped` if the batch was. */
void queue_hold(struct instance *consumer);
void queue_resume(struct instance *consumer, bool dropped);

/* Whether nothing waits and nothing is being processed. */
bool queue_idle(struct instance *consumer);

/* Bytes that wait. [any] */
uint64_t queue_bytes(struct instance *consumer);

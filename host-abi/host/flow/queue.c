/* SPDX-License-Identifier: Apache-2.0 */
/* Batch queues. Contracts in queue.h. */
#include "host/flow/queue.h"

#include "base/check.h"
#include "host/flow/offer.h"
#include "host/graph/instance.h"
#include "host/state.h"

#include <errno.h>
#include <stdlib.h>

struct queue_item {
	struct queue_item *next;
	const struct andiron_batch *batch;
	struct offered *offer; /* NULL: it was sent */
};

static void hand_over(struct job *job);
static void handed_over(struct job *job);

void queue_init(struct instance *consumer, uint64_t limit)
{
	consumer->queue = (struct queue){.limit = limit};
	consumer->queue.tail = &consumer->queue.first;
	consumer->batch.heavy = hand_over;
	consumer->batch.light = handed_over;
}

static void item_free(struct queue_item *item, bool dropped)
{
	item->batch->release(item->batch->owner);
	offer_unref(item->offer, dropped);
	free(item);
}

/* Why the batch cannot be taken, or NULL. The lock is held. */
static const char *refusal(const struct queue *q, const struct queue_item *item,
			   const struct andiron_batch *batch)
{
	if (q->closed)
		return q->closed;
	if (batch->bytes > q->limit || q->bytes > q->limit - batch->bytes)
		return "queue_full";
	return item ? NULL : "no_memory";
}

/* Whether the batch job must be submitted now. The lock is held. */
static bool schedule(struct queue *q)
{
	bool now = q->open && q->first && !q->scheduled;

	q->scheduled = q->scheduled || now;
	return now;
}

static void append(struct queue *q, struct queue_item *item, const struct andiron_batch *batch)
{
	check(q->bytes + batch->bytes <= q->limit);
	batch->retain(batch->owner);
	*item = (struct queue_item){.batch = batch};
	*q->tail = item;
	q->tail = &item->next;
	q->bytes += batch->bytes;
}

void queue_put(struct instance *consumer, const struct andiron_batch *batch)
{
	struct queue_item *item = malloc(sizeof(*item));
	struct ledger *ledger = &consumer->host->ledger;
	struct queue *q = &consumer->queue;
	const char *reason;
	bool submit = false;

	/* Counted first: once it is in the queue, a worker may take it out. */
	ledger_queued(ledger, &consumer->ledger_node, batch->samples);
	pthread_mutex_lock(&consumer->lock);
	reason = refusal(q, item, batch);
	if (!reason) {
		append(q, item, batch);
		submit = schedule(q);
	}
	pthread_mutex_unlock(&consumer->lock);
	if (reason) {
		free(item);
		ledger_unqueued(ledger, &consumer->ledger_node, str_of(reason), batch->samples);
	}
	if (submit)
		strand_submit(&consumer->strand, &consumer->batch);
}

int queue_reserve(struct instance *consumer, const struct andiron_batch *batch,
		  struct queue_item **ret)
{
	struct queue_item *item = malloc(sizeof(*item));
	struct queue *q = &consumer->queue;
	int rc = item ? 0 : -ENOMEM;

	pthread_mutex_lock(&consumer->lock);
	if (!rc && q->closed)
		rc = -ESHUTDOWN;
	else if (!rc && batch->bytes > q->limit)
		rc = -E2BIG;
	else if (!rc && q->bytes > q->limit - batch->bytes)
		rc = -EAGAIN;
	if (!rc)
		q->bytes += batch->bytes;
	pthread_mutex_unlock(&consumer->lock);
	if (rc) {
		free(item);
		return rc;
	}
	batch->retain(batch->owner);
	*item = (struct queue_item){.batch = batch};
	*ret = item;
	return 0;
}

void queue_unreserve(struct instance *consumer, struct queue_item *item)
{
	pthread_mutex_lock(&consumer->lock);
	check(consumer->queue.bytes >= item->batch->bytes);
	consumer->queue.bytes -= item->batch->bytes;
	pthread_mutex_unlock(&consumer->lock);
	item_free(item, true);
}

void queue_put_reserved(struct instance *consumer, struct queue_item *item, struct offered *offer)
{
	struct ledger *ledger = &consumer->host->ledger;
	struct queue *q = &consumer->queue;
	uint64_t samples = item->batch->samples;
	const char *closed;
	bool submit = false;

	ledger_queued(ledger, &consumer->ledger_node, samples);
	pthread_mutex_lock(&consumer->lock);
	closed = q->closed;
	item->offer = offer;
	if (!closed) {
		*q->tail = item;
		q->tail = &item->next;
		submit = schedule(q);
	}
	pthread_mutex_unlock(&consumer->lock);
	if (closed) {
		ledger_unqueued(ledger, &consumer->ledger_node, str_of(closed), samples);
		queue_unreserve(consumer, item);
	}
	if (submit)
		strand_submit(&consumer->strand, &consumer->batch);
}

bool queue_has_room(struct instance *consumer, uint64_t bytes)
{
	struct queue *q = &consumer->queue;
	bool room;

	pthread_mutex_lock(&consumer->lock);
	room = !q->closed && bytes <= q->limit && q->bytes <= q->limit - bytes;
	pthread_mutex_unlock(&consumer->lock);
	return room;
}

static struct queue_item *take(struct instance *consumer)
{
	struct queue *q = &consumer->queue;
	struct queue_item *item;

	pthread_mutex_lock(&consumer->lock);
	item = q->first;
	if (item) {
		check(q->bytes >= item->batch->bytes);
		q->first = item->next;
		q->bytes -= item->batch->bytes;
		if (!q->first)
			q->tail = &q->first;
	}
	pthread_mutex_unlock(&consumer->lock);
	return item;
}

static void call_batch(struct instance *consumer, struct queue_item *item)
{
	struct queue *q = &consumer->queue;
	bool held, dropped;

	pthread_mutex_lock(&consumer->lock);
	check(!q->in_hand && !q->held);
	q->within = true;
	q->dropped = false;
	pthread_mutex_unlock(&consumer->lock);
	consumer->component->batch(consumer->self, item->batch);
	pthread_mutex_lock(&consumer->lock);
	q->within = false;
	held = q->held;
	dropped = q->dropped;
	if (held)
		q->in_hand = item;
	pthread_mutex_unlock(&consumer->lock);
	if (!held)
		item_free(item, dropped);
}

static void hand_over(struct job *job)
{
	struct instance *consumer = container_of(job, struct instance, batch);
	struct ledger *ledger = &consumer->host->ledger;
	struct queue_item *item = take(consumer);
	uint64_t samples;

	if (!item)
		return; /* dropped at the deadline meanwhile */
	check(consumer->component->batch && consumer->created);
	samples = item->batch->samples;
	ledger_processing(ledger, &consumer->ledger_node, samples);
	atomic_fetch_add(&consumer->received, samples);
	call_batch(consumer, item);
	ledger_processed(ledger, &consumer->ledger_node, samples);
}

/* The next one, unless the queue is held. */
static void go_on(struct instance *consumer)
{
	bool submit;

	pthread_mutex_lock(&consumer->lock);
	consumer->queue.scheduled = consumer->queue.held;
	submit = schedule(&consumer->queue);
	pthread_mutex_unlock(&consumer->lock);
	if (submit)
		strand_submit(&consumer->strand, &consumer->batch);
	else
		host_poke(consumer->host);
}

static void handed_over(struct job *job)
{
	go_on(container_of(job, struct instance, batch));
}

void queue_hold(struct instance *consumer)
{
	pthread_mutex_lock(&consumer->lock);
	consumer->queue.held = true;
	pthread_mutex_unlock(&consumer->lock);
}

void queue_resume(struct instance *consumer, bool dropped)
{
	struct queue_item *item;
	bool within;

	pthread_mutex_lock(&consumer->lock);
	check(consumer->queue.held);
	consumer->queue.held = false;
	consumer->queue.dropped = dropped;
	within = consumer->queue.within;
	item = consumer->queue.in_hand;
	consumer->queue.in_hand = NULL;
	pthread_mutex_unlock(&consumer->lock);
	if (item)
		item_free(item, dropped);
	if (!within) /* else its job goes on by itself */
		go_on(consumer);
}

void queue_open(struct instance *consumer)
{
	bool submit;

	pthread_mutex_lock(&consumer->lock);
	check(!consumer->queue.open);
	consumer->queue.open = true;
	submit = schedule(&consumer->queue);
	pthread_mutex_unlock(&consumer->lock);
	if (submit)
		strand_submit(&consumer->strand, &consumer->batch);
}

void queue_close(struct instance *consumer, const char *reason)
{
	struct queue_item *item;

	pthread_mutex_lock(&consumer->lock);
	if (!consumer->queue.closed)
		consumer->queue.closed = reason;
	reason = consumer->queue.closed;
	pthread_mutex_unlock(&consumer->lock);
	while ((item = take(consumer))) {
		ledger_unqueued(&consumer->host->ledger, &consumer->ledger_node, str_of(reason),
				item->batch->samples);
		item_free(item, true);
	}
}

bool queue_idle(struct instance *consumer)
{
	bool idle;

	pthread_mutex_lock(&consumer->lock);
	idle = !consumer->queue.first && !consumer->queue.scheduled;
	pthread_mutex_unlock(&consumer->lock);
	return idle;
}

uint64_t queue_bytes(struct instance *consumer)
{
	uint64_t bytes;

	pthread_mutex_lock(&consumer->lock);
	bytes = consumer->queue.bytes;
	pthread_mutex_unlock(&consumer->lock);
	return bytes;
}

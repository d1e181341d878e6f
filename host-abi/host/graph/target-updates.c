/* SPDX-License-Identifier: Apache-2.0 */
/* Target updates on their way to a consumer, and snapshots made from a table. A snapshot is built
 * by a list of its own and then shown under the generation that its producer has reached, so that
 * the producer's next difference continues it. What a consumer gets is shown under a producer that
 * stands for the place where it refers to the list: so the lists of a port keep their order, and
 * the same list in two places is two. */
#include "base/check.h"
#include "host/graph/exports.h"
#include "host/state.h"

#include <errno.h>
#include <stdatomic.h>

struct delivery {
	struct job job;
	struct instance *to;
	const char *port;
	const struct andiron_targets *update;
};

static void deliver(struct job *job)
{
	struct delivery *d = container_of(job, struct delivery, job);
	struct instance *to = d->to;

	if (to->component->targets && (to->stage == STAGE_LIVE || to->stage == STAGE_STARTING))
		to->component->targets(to->self, d->port, d->update);
	if (to->predecessor)
		host_poke(to->host);
	d->update->release(d->update->owner);
	free(d);
}

struct shown {
	atomic_uint refs;
	struct andiron_targets targets;
	const struct andiron_targets *inner;
};

static void shown_retain(void *owner)
{
	struct shown *s = owner;

	atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
}

static void shown_release(void *owner)
{
	struct shown *s = owner;

	if (atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) > 1)
		return;
	s->inner->release(s->inner->owner);
	free(s);
}

/* Takes the reference of `inner` over, also on failure. */
static const struct andiron_targets *show(const struct andiron_targets *inner, uint64_t producer,
					  uint64_t generation)
{
	struct shown *s = malloc(sizeof(*s));

	if (!s) {
		inner->release(inner->owner);
		return NULL;
	}
	*s = (struct shown){.refs = 1, .targets = *inner, .inner = inner};
	s->targets.producer = producer;
	s->targets.generation = generation;
	s->targets.owner = s;
	s->targets.retain = shown_retain;
	s->targets.release = shown_release;
	return &s->targets;
}

#define PLACE_BITS 32
#define PORT_BITS  16

int target_edge_init(struct target_edge *edge, struct instance *to, const char *port,
		     uint32_t order)
{
	uint32_t number = intern_add(&to->host->names, str_of(port));

	if (number == INDEX_NONE)
		return -ENOMEM;
	/* From 1: a producer that is 0 looks like one that was forgotten. */
	*edge = (struct target_edge){.to = to,
				     .port = intern_get(&to->host->names, number).p,
				     .place = (uint64_t)number << PLACE_BITS | (order + 1u)};
	return 0;
}

bool targets_deliver(const struct target_edge *edge, size_t nth,
		     const struct andiron_targets *update)
{
	uint64_t producer = (uint64_t)nth << (PLACE_BITS + PORT_BITS) | edge->place;
	struct delivery *d = malloc(sizeof(*d));

	if (!d)
		return false;
	update->retain(update->owner);
	update = show(update, producer, update->generation);
	if (!update) {
		free(d);
		return false;
	}
	*d = (struct delivery){
		.job.light = deliver, .to = edge->to, .port = edge->port, .update = update};
	if (!strand_submit(&edge->to->strand, &d->job)) {
		update->release(update->owner);
		free(d);
	}
	return true;
}

struct copying {
	struct target_list *list;
	uint64_t producer;
	bool failed;
};

static void copy_row(void *context, int change, struct target_row *row)
{
	struct copying *c = context;

	if (row->producer == c->producer && !c->failed)
		c->failed = target_list_set(c->list, row->row, row->order, row->labels,
					    row->n_labels) < 0;
}

const struct andiron_targets *targets_snapshot(struct target_table *table, uint64_t producer,
					       uint64_t generation)
{
	struct copying c = {.list = target_list_new(producer), .producer = producer};
	const struct andiron_targets *inner = NULL;

	if (!c.list)
		return NULL;
	if (table)
		target_table_each(table, copy_row, &c);
	if (!c.failed && target_list_flush(c.list, &inner) < 0)
		inner = NULL;
	target_list_free(c.list);
	return inner ? show(inner, producer, generation) : NULL;
}

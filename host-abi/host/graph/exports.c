/* SPDX-License-Identifier: Apache-2.0 */
/* Exports and their edges. Contracts in exports.h. */
#include "host/graph/exports.h"

#include "abi/target-feed.h"
#include "base/check.h"
#include "base/clock.h"
#include "host/state.h"

#include <errno.h>

/* The owner resends, on its strand. */
static void again(struct job *job)
{
	struct export *e = container_of(job, struct export, again);
	struct instance *i = e->owner;
	bool kept;

	pthread_mutex_lock(&e->lock);
	e->asked = false;
	kept = e->table;
	pthread_mutex_unlock(&e->lock);
	if (i->stage == STAGE_LIVE || i->stage == STAGE_STARTING) {
		i->component->resend(i->self, e->name);
		pthread_mutex_lock(&e->lock);
		e->whole |= kept && e->table;
		pthread_mutex_unlock(&e->lock);
	}
	host_poke(i->host);
}

int export_init(struct export *e, const char *name, struct instance *owner, bool keep)
{
	*e = (struct export){.name = name, .owner = owner, .again.light = again};
	if (keep || !owner)
		e->table = target_table_new();
	if ((keep || !owner) && !e->table)
		return -ENOMEM;
	e->whole = e->table;
	pthread_mutex_init(&e->lock, NULL);
	return 0;
}

void export_fini(struct export *e)
{
	target_table_free(e->table);
	vec_free(&e->generations);
	vec_free(&e->edges);
	pthread_mutex_destroy(&e->lock);
}

static size_t nth(const struct export *e, const struct generation *g)
{
	return (size_t)(g - e->generations.p);
}

/* Once, however many ask until it begins. What was never filled is not asked for. The lock is held.
 */
static void ask_again(struct export *e)
{
	if (e->asked || !e->generations.n)
		return;
	/* A strand that is closed belongs to one that ends: its targets go. */
	e->asked = strand_submit(&e->owner->strand, &e->again);
}

/* Everything there is, as snapshots: from the table, or empty and then filled by the owner. The
 * lock is held. */
static bool send_snapshots(struct export *e, const struct target_edge *edge)
{
	vec_each (&e->generations, g) {
		const struct andiron_targets *all =
			targets_snapshot(e->table, g->producer, g->generation);
		bool sent = all && targets_deliver(edge, nth(e, g), all);

		if (all)
			all->release(all->owner);
		if (!sent)
			return false;
	}
	if (!e->whole)
		ask_again(e);
	return true;
}

static void pass_on(struct export *e, const struct andiron_targets *update,
		    const struct generation *g)
{
	vec_each (&e->edges, edge) {
		bool sent;

		if (edge->state == EDGE_WAITING)
			continue;
		if (edge->state == EDGE_LIVE)
			sent = targets_deliver(edge, nth(e, g), update);
		else
			sent = send_snapshots(e, edge);
		edge->state = sent ? EDGE_LIVE : EDGE_STALE;
	}
}

static struct generation *generation_of(struct export *e, uint64_t producer)
{
	vec_each (&e->generations, g)
		if (g->producer == producer)
			return g;
	if (!vec_push(&e->generations, ((struct generation){.producer = producer})))
		return NULL;
	return &e->generations.p[e->generations.n - 1];
}

static void no_change(void *context, int change, struct target_row *row)
{
}

static int apply(struct export *e, const struct andiron_targets *update)
{
	struct generation *g;
	size_t n = e->generations.n;
	int r;

	g = generation_of(e, update->producer);
	if (!g)
		return -ENOMEM;
	/* Not left to the table, which would wait for a snapshot after a gap: to refuse is to
	 * change nothing. */
	if (!(update->flags & ANDIRON_TARGETS_SNAPSHOT) &&
	    (n < e->generations.n || update->generation != g->generation + 1)) {
		e->generations.n = n;
		return -EINVAL;
	}
	check(g->producer == update->producer);
	if (e->table)
		r = target_table_apply(e->table, update, no_change, NULL);
	else
		r = target_update_sound(update) ? 0 : -EINVAL;
	if (r == 0)
		g->generation = update->generation;
	else if (n < e->generations.n)
		e->generations.n = n; /* nothing was heard of it before */
	return r;
}

/* The lock is held. */
static void forget_rows(struct export *e)
{
	target_table_free(e->table);
	e->table = NULL;
	e->whole = false;
	e->looked_ns = 0;
}

/* A table as a consumer that comes late has it: no rows of each producer, then what the owner says.
 * False when memory is short. The lock is held. */
static bool begin_table(struct export *e)
{
	bool begun;

	e->table = target_table_new();
	begun = e->table;
	vec_each (&e->generations, g) {
		const struct andiron_targets *none =
			targets_snapshot(NULL, g->producer, g->generation);

		begun = begun && none &&
			target_table_apply(e->table, none, no_change, NULL) == 0;
		if (none)
			none->release(none->owner);
	}
	return begun;
}

void export_look(struct export *e)
{
	pthread_mutex_lock(&e->lock);
	if (!e->table || e->looked_ns)
		e->looked_ns = clock_mono();
	if (!e->table) {
		e->whole = !e->generations.n;
		if (begin_table(e))
			ask_again(e);
		else
			forget_rows(e);
	}
	pthread_mutex_unlock(&e->lock);
}

int export_send(struct export *e, const struct andiron_targets *update)
{
	int r;

	pthread_mutex_lock(&e->lock);
	r = apply(e, update);
	if (r == 0) {
		e->changed_ns = clock_mono();
		pass_on(e, update, generation_of(e, update->producer));
		if (e->looked_ns && e->changed_ns - e->looked_ns > EXPORT_LOOK_NS)
			forget_rows(e);
	}
	pthread_mutex_unlock(&e->lock);
	return r;
}

void export_attach(struct export *e, struct instance *to)
{
	pthread_mutex_lock(&e->lock);
	vec_each (&e->edges, edge)
		if (edge->to == to && edge->state == EDGE_WAITING)
			edge->state = send_snapshots(e, edge) ? EDGE_LIVE : EDGE_STALE;
	pthread_mutex_unlock(&e->lock);
}

void export_again(struct export *e, struct instance *to, const char *port)
{
	pthread_mutex_lock(&e->lock);
	vec_each (&e->edges, edge) {
		if (edge->to != to || edge->state == EDGE_WAITING || strcmp(edge->port, port) != 0)
			continue;
		/* An isolated one asks when it has begun again, and has none. */
		if (!e->whole && edge->state == EDGE_LIVE && !to->isolated)
			ask_again(e);
		else
			edge->state = send_snapshots(e, edge) ? EDGE_LIVE : EDGE_STALE;
	}
	pthread_mutex_unlock(&e->lock);
}

static struct target_edge *find_edge(struct target_edges *edges, const struct target_edge *like)
{
	vec_each (edges, edge)
		if (edge->to == like->to && edge->place == like->place)
			return edge;
	return NULL;
}

/* The consumer goes on without these rows. */
static void withdraw(struct export *e, const struct target_edge *edge)
{
	vec_each (&e->generations, g) {
		const struct andiron_targets *none =
			targets_snapshot(NULL, g->producer, g->generation + 1);

		if (none) {
			targets_deliver(edge, nth(e, g), none);
			none->release(none->owner);
		}
	}
}

void export_rewire(struct export *e, struct target_edges *edges)
{
	struct target_edges old;

	pthread_mutex_lock(&e->lock);
	vec_each (edges, edge) {
		const struct target_edge *before = find_edge(&e->edges, edge);

		if (before)
			edge->state = before->state;
	}
	vec_each (&e->edges, edge)
		if (edge->state != EDGE_WAITING && !edge->to->retiring && !find_edge(edges, edge))
			withdraw(e, edge);
	old = e->edges;
	e->edges = *edges;
	*edges = old;
	pthread_mutex_unlock(&e->lock);
}

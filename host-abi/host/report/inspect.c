/* SPDX-License-Identifier: Apache-2.0 */
/* See inspect.h. */
#include "host/report/inspect.h"

#include "base/check.h"
#include "base/clock.h"
#include "host/state.h"

#include <errno.h>
#include <string.h>

static struct instance *find(struct host *host, const char *component)
{
	vec_each (&host->instances, at)
		if (!(*at)->retiring && strcmp((*at)->name, component) == 0)
			return *at;
	return NULL;
}

/* When the instance last changed its targets: CLOCK_MONOTONIC, 0 as long as one of its exports is
 * still to be filled. */
static int64_t last_change(struct instance *i)
{
	int64_t last = 1;

	for (size_t n = 0; n < i->n_exports && last; n++) {
		struct export *e = &i->exports[n];

		pthread_mutex_lock(&e->lock);
		if (!e->changed_ns || e->changed_ns > last)
			last = e->changed_ns;
		pthread_mutex_unlock(&e->lock);
	}
	return last;
}

int64_t look_quiet_ns(struct host *host, const char **ret_waiting)
{
	int64_t latest = 0;

	check(loop_is_here(&host->loop));
	*ret_waiting = NULL;
	vec_each (&host->instances, at) {
		struct instance *i = *at;
		int64_t last = last_change(i);

		if (i->stage == STAGE_FAILED)
			continue;
		if (i->stage != STAGE_LIVE || !last || strand_held(&i->strand) ||
		    !strand_idle(&i->strand)) {
			*ret_waiting = i->name;
			return -1;
		}
		if (last > latest)
			latest = last;
	}
	return clock_mono() - latest;
}

int look_targets(struct host *host, const char *component, target_change_fn fn, void *context)
{
	struct instance *i = find(host, component);

	for (size_t n = 0; i && n < i->n_exports; n++) {
		pthread_mutex_lock(&i->exports[n].lock);
		check(i->exports[n].table);
		target_table_each(i->exports[n].table, fn, context);
		pthread_mutex_unlock(&i->exports[n].lock);
	}
	return i ? 0 : -ENOENT;
}

struct asking {
	struct host *host;
	struct instance *of;
	const void *table, *sink; /* of the extension that is asked */
};

/* What of one export the component drops, if it is given that. */
static int ask_of_export(const struct asking *a, struct export *e)
{
	const struct andiron_dropped_targets *t = a->table;
	int r = 0;

	pthread_mutex_lock(&e->lock);
	vec_each (&e->edges, edge) {
		for (size_t n = 0; edge->to == a->of && r == 0 && n < e->generations.n; n++) {
			const struct generation *g = &e->generations.p[n];
			const struct andiron_targets *all =
				targets_snapshot(e->table, g->producer, g->generation);

			r = all ? t->each(a->of->self, all, a->sink) : -ENOMEM;
			if (all)
				all->release(all->owner);
		}
	}
	pthread_mutex_unlock(&e->lock);
	return r;
}

/* In the order of producers: instances have rising ids, and literals greater ones. */
static int ask_dropped(const struct asking *a)
{
	const struct andiron_dropped_targets *t = a->table;
	int r = 0;

	if (!ANDIRON_HAS(t, andiron_dropped_targets, each))
		return 0;
	vec_each (&a->host->instances, at)
		for (size_t n = 0; n < (*at)->n_exports && r == 0; n++)
			r = ask_of_export(a, &(*at)->exports[n]);
	vec_each (&a->host->inline_targets, l)
		r = r == 0 ? ask_of_export(a, &(*l)->export) : r;
	return r;
}

static int ask_matched(const struct asking *a)
{
	const struct andiron_target_processes *t = a->table;

	return ANDIRON_HAS(t, andiron_target_processes, each) ? t->each(a->of->self, a->sink) : 0;
}

static bool offers(const struct andiron_component *c, const char *id)
{
	for (const char *const *at = c->offers; at && *at; at++)
		if (strcmp(*at, id) == 0)
			return true;
	return false;
}

/* Has one component answer by its extension `id`. One that does not offer it is not asked: its
 * table for another id would be taken for this one's. */
static int ask(struct host *host, const char *component, const char *id,
	       int (*answer)(const struct asking *asking), const void *sink)
{
	struct instance *i = find(host, component);
	struct asking a = {.host = host, .of = i, .sink = sink};
	int r = 0;

	if (!i)
		return -ENOENT;
	if (i->stage != STAGE_LIVE || !i->component->extension || !offers(i->component, id))
		return 0;
	if (!strand_enter(&i->strand))
		return -EBUSY;
	a.table = i->component->extension(i->self, id);
	if (a.table)
		r = answer(&a);
	strand_leave(&i->strand);
	return r;
}

int inspect_dropped_targets(struct host *host, const char *component,
			    const struct andiron_dropped_targets_sink *sink)
{
	return ask(host, component, ANDIRON_DROPPED_TARGETS_ID, ask_dropped, sink);
}

int inspect_target_processes(struct host *host, const char *component,
			     const struct andiron_target_processes_sink *sink)
{
	return ask(host, component, ANDIRON_TARGET_PROCESSES_ID, ask_matched, sink);
}

int look_health(struct host *host, const char *component, uint32_t *ret_state, struct buf *ret)
{
	struct instance *i = find(host, component);

	if (!i)
		return -ENOENT;
	pthread_mutex_lock(&i->lock);
	*ret_state = i->health.state;
	buf_str_append(ret, str_of(i->health.text));
	pthread_mutex_unlock(&i->lock);
	return 0;
}

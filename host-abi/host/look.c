/* SPDX-License-Identifier: Apache-2.0 */
/* See look.h. */
#include "host/look.h"

#include "base/check.h"
#include "base/clock.h"
#include "host/state.h"

#include <errno.h>

static struct instance *find(struct host *host, const char *component)
{
	vec_each (&host->instances, at)
		if (!(*at)->retiring && strcmp((*at)->name, component) == 0)
			return *at;
	return NULL;
}

/* When the instance last changed its targets: CLOCK_MONOTONIC, 0 as long as one
 * of its exports is still to be filled. */
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
		target_table_each(i->exports[n].table, fn, context);
		pthread_mutex_unlock(&i->exports[n].lock);
	}
	return i ? 0 : -ENOENT;
}

static int ask_dropped(struct instance *i, const void *table, const void *sink)
{
	const struct andiron_dropped *t = table;

	return t->size < sizeof(*t) ? 0 : t->each(i->self, sink);
}

static int ask_matched(struct instance *i, const void *table, const void *sink)
{
	const struct andiron_matched *t = table;

	return t->size < sizeof(*t) ? 0 : t->each(i->self, sink);
}

/* Has one component answer by its extension `id`. */
static int ask(struct host *host, const char *component, const char *id,
	       int (*answer)(struct instance *i, const void *table, const void *sink),
	       const void *sink)
{
	struct instance *i = find(host, component);
	const void *table;
	int r = 0;

	if (!i)
		return -ENOENT;
	if (i->stage != STAGE_LIVE || !i->component->extension)
		return 0;
	if (!strand_enter(&i->strand))
		return -EBUSY;
	table = i->component->extension(i->self, id);
	if (table)
		r = answer(i, table, sink);
	strand_leave(&i->strand);
	return r;
}

int look_dropped(struct host *host, const char *component, const struct andiron_dropped_sink *sink)
{
	return ask(host, component, ANDIRON_DROPPED_ID, ask_dropped, sink);
}

int look_matched(struct host *host, const char *component, const struct andiron_matched_sink *sink)
{
	return ask(host, component, ANDIRON_MATCHED_ID, ask_matched, sink);
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

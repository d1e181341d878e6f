/* SPDX-License-Identifier: Apache-2.0 */
/* The life cycle calls of an instance, as jobs of its strand. The heavy part of each calls the
 * component on a worker, the light part notes on the loop what came of it. */
#include "host/graph/lifecycle.h"
#include "host/graph/scheduler.h"
#include "host/graph/succession.h"
#include "host/graph/wiring.h"

#include "base/check.h"
#include "base/clock.h"
#include "host/services/callbacks.h"
#include "host/services/sandboxed-worker.h"
#include "host/services/services.h"

#include <errno.h>
#include <fcntl.h>

static void start_heavy(struct job *job)
{
	struct instance *i = container_of(job, struct instance, start);

	i->result = i->component->start ? i->component->start(i->self, &i->error) : 0;
}

static const char *cause(const struct instance *i)
{
	return i->error.error.code ? i->error.error.text : strerror(-i->result);
}

static void note_failure(struct instance *i)
{
	struct host *host = i->host;

	i->stage = STAGE_FAILED;
	queue_close(i, "not_started");
	instance_healthf(i, ANDIRON_HEALTH_EXITED, "could not start: %s", cause(i));
	log_printf(&host->log, ANDIRON_LOG_ERROR, i->name, "could not start: %s", cause(i));
	buf_printf(&host->failed, "%s%s", host->failed.n ? ", " : "", i->name);
	if (!host->failed_cause[0])
		snprintf(host->failed_cause, sizeof(host->failed_cause), "%.*s",
			 (int)sizeof(host->failed_cause) - 1, cause(i));
}

/* Behind the targets that it was given when it went live. */
static void started(struct job *job)
{
	struct instance *i = container_of(job, struct instance, start);

	struct instance *was = succession_overlaps(i);

	if (i->stage == STAGE_STARTING)
		i->stage = STAGE_LIVE;
	if (was) /* from here on it is waited for its targets, and not for ever */
		was->deadline_ns = clock_mono() + i->host->options.drain_ns;
	host_poke(i->host);
}

static void start_light(struct job *job)
{
	struct instance *i = container_of(job, struct instance, start);
	bool said;

	if (i->stage == STAGE_ABANDONED)
		return;
	if (i->result < 0) {
		note_failure(i);
		host_poke(i->host);
		return;
	}
	pthread_mutex_lock(&i->lock);
	said = i->health.state != ANDIRON_HEALTH_UNKNOWN;
	pthread_mutex_unlock(&i->lock);
	if (!said)
		instance_health(i, ANDIRON_HEALTH_HEALTHY, STR("running"));
	queue_open(i);
	wiring_attach(i);
	i->start.heavy = NULL;
	i->start.light = started;
	strand_submit(&i->strand, &i->start);
}

void lifecycle_start(struct instance *i)
{
	check(i->stage == STAGE_NEW && i->created);
	i->stage = STAGE_STARTING;
	strand_submit(&i->strand, &i->start);
}

static void drain_heavy(struct job *job)
{
	struct instance *i = container_of(job, struct instance, drain);
	int64_t left = i->deadline_ns - clock_mono();

	if (i->component->drain(i->self, left > 0 ? left : 0) < 0)
		atomic_store(&i->drained, true);
	atomic_store(&i->drain_over, true);
}

static void poke_light(struct job *job)
{
	host_poke(container_of(job, struct instance, drain)->host);
}

void lifecycle_drain(struct instance *i)
{
	check(i->stage == STAGE_LIVE);
	if (!i->component->drain) {
		i->stage = STAGE_DRAINED;
		return;
	}
	i->stage = STAGE_DRAINING;
	strand_submit(&i->strand, &i->drain);
}

static void stop_heavy(struct job *job)
{
	struct instance *i = container_of(job, struct instance, stop);

	if (i->component->stop)
		i->component->stop(i->self);
}

static void stop_light(struct job *job)
{
	struct instance *i = container_of(job, struct instance, stop);

	calls_clear(i);
	metrics_pull(i, true);
	if (i->stage == STAGE_STOPPING)
		i->stage = STAGE_STOPPED;
	host_poke(i->host);
}

void lifecycle_stop(struct instance *i)
{
	check(i->stage == STAGE_DRAINED);
	i->stage = STAGE_STOPPING;
	strand_submit(&i->strand, &i->stop);
}

/* The gone ones last; the others keep their order. The number of these. */
static size_t part_gone(struct instances *list)
{
	size_t kept = 0;

	for (size_t n = 0; n < list->n; n++) {
		struct instance *i = list->p[n];

		if (i->stage == STAGE_GONE)
			continue;
		list->p[n] = list->p[kept];
		list->p[kept++] = i;
	}
	return kept;
}

static void forget_gone(struct target_sources *list)
{
	size_t kept = 0;

	vec_each (list, s)
		if (!s->from || s->from->stage != STAGE_GONE)
			list->p[kept++] = *s;
	list->n = kept;
}

static bool any_gone(const struct instances *list)
{
	vec_each (list, at)
		if ((*at)->stage == STAGE_GONE)
			return true;
	return false;
}

void lifecycle_reap(struct host *host)
{
	struct instances *list = &host->instances;
	size_t n = list->n;
	/* What the last ones said at a stop stays, since it is asked for afterwards. */
	bool forget = host->n_stops_seen == 0 && host->running;

	if (!any_gone(list))
		return;
	pthread_rwlock_wrlock(&host->wiring);
	list->n = part_gone(list);
	pthread_rwlock_unlock(&host->wiring);
	vec_each (list, at) {
		(*at)->downstream.n = part_gone(&(*at)->downstream);
		forget_gone(&(*at)->sources);
	}
	for (size_t gone = list->n; gone < n; gone++) {
		succession_end(list->p[gone]);
		metrics_leave(&host->metrics, list->p[gone]->name, forget);
		instance_unref(list->p[gone]);
	}
	host_poke(host);
}

/* The strand is closed: nobody but the reaper touches the instance again. */
static void destroy_light(struct job *job)
{
	struct instance *i = container_of(job, struct instance, destroy);
	bool abandoned = i->stage == STAGE_ABANDONED;

	if (i->created && i->component->destroy)
		i->component->destroy(i->self);
	i->created = false;
	instance_unregister(i);
	if (abandoned)
		return;
	check(i->stage == STAGE_DESTROYING && queue_idle(i));
	ledger_leave(&i->host->ledger, &i->ledger_node);
	i->stage = STAGE_GONE;
	host_poke(i->host);
}

bool lifecycle_destroy(struct instance *i)
{
	check(i->stage == STAGE_NEW || i->stage == STAGE_STOPPED);
	if (!strand_close(&i->strand, &i->destroy))
		return false;
	i->stage = STAGE_DESTROYING;
	return true;
}

static void init_jobs(struct instance *i)
{
	i->start = (struct job){.heavy = start_heavy, .light = start_light};
	i->drain = (struct job){.heavy = drain_heavy, .light = poke_light};
	i->stop = (struct job){.heavy = stop_heavy, .light = stop_light};
	i->destroy = (struct job){.light = destroy_light};
}

/* Asks a service for its tables while nobody else can call it. */
static int ask_offers(struct instance *i)
{
	const struct andiron_component *c = i->component;

	if (!(c->flags & ANDIRON_COMPONENT_SERVICE) || !c->offers || !c->extension)
		return 0;
	for (const char *const *id = c->offers; *id; id++) {
		const void *table = c->extension(i->self, *id);

		bool room = true;

		pthread_rwlock_wrlock(&i->host->wiring);
		if (table)
			room = vec_push(&i->offers, ((struct offer){*id, table}));
		pthread_rwlock_unlock(&i->host->wiring);
		if (!room)
			return -ENOMEM;
	}
	return 0;
}

/* Every extension it cannot do without is there, and is noted as used. */
static int check_needs(struct instance *i, struct error *err)
{
	const char *const none[] = {NULL};
	const char *const *id = i->component->needs ? i->component->needs : none;

	for (; *id && !i->host->options.without_services; id++) {
		struct andiron_extension found;
		int r = host_services.extension(i->id, *id, &found);

		if (r < 0)
			return error_set(err, r,
					 r == -ENOENT
						 ? "%s needs the extension \"%s\", which "
						   "nothing here offers; install the plugin "
						   "that does"
						 : "%s: out of memory while looking for \"%s\"",
					 i->name, *id);
	}
	return 0;
}

static int call_create(struct instance *i, const struct plan_node *node, struct error *err)
{
	struct andiron_error failure = {0};
	int r = check_needs(i, err);

	if (r < 0)
		return r;
	r = i->component->create(&host_services, i->id, node->args, &i->self, &failure);
	if (r < 0) {
		const char *why = failure.error.code ? failure.error.text : strerror(-r);

		return error_set(err, r, "%s: %s", i->name, why);
	}
	i->created = true;
	return 0;
}

/* One that failed to be made goes the way of all: it may have left jobs in its strand. */
static void discard(struct host *host, struct instance *i)
{
	scheduler_retire(i, clock_mono());
	while (instances_have(&host->instances, i) && i->stage != STAGE_ABANDONED)
		host_step(host);
}

/* Without a descriptor for it, the file at its path has to do, as long as that is the one. */
static void note_file(struct instance *i, const struct registered_plugin *plugin)
{
	if (!plugin)
		return;
	i->generation = plugin->generation;
	if (plugin->fd >= 0 &&
	    (i->isolated || ANDIRON_HAS(i->component, andiron_component, subprocess) ||
	     ANDIRON_HAS(i->component, andiron_component, sender)))
		/* Not one of those that the worker has, see sandboxed-worker.c. */
		i->file = fcntl(plugin->fd, F_DUPFD_CLOEXEC, SANDBOXED_WORKER_SOCKET + 2);
}

int lifecycle_create(struct host *host, const struct plan_node *node, struct instance **ret,
		     struct error *err)
{
	struct instance *i;
	bool room;
	int r;

	pthread_rwlock_wrlock(&host->wiring);
	room = vec_reserve(&host->instances, 1);
	pthread_rwlock_unlock(&host->wiring);
	r = room ? instance_new(host, node->id, node->registered->component, node->isolate, &i)
		 : -ENOMEM;
	if (r < 0)
		return r;
	init_jobs(i);
	note_file(i, node->registered->plugin);
	pthread_rwlock_wrlock(&host->wiring);
	host->instances.p[host->instances.n++] = i;
	pthread_rwlock_unlock(&host->wiring);
	r = call_create(i, node, err);
	if (r == 0)
		r = ask_offers(i);
	if (r < 0) {
		discard(host, i);
		return r;
	}
	*ret = i;
	return 0;
}

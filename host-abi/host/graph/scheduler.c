/* SPDX-License-Identifier: Apache-2.0 */
/* Steps in the life of instances. Contract in scheduler.h.
 *
 * Each stage has one function that says whether the instance may leave it. The list is gone through
 * until nobody can. What an instance has to know of all others is noted for all at once before each
 * round: a graph may have ten thousand. */
#include "host/graph/lifecycle.h"
#include "host/graph/scheduler.h"
#include "host/graph/succession.h"

#include "base/clock.h"

/* What does not come back so long after its deadline is left behind. */
#define GRACE_NS (3 * NS_PER_SEC)

static bool overdue(const struct instance *i)
{
	return i->retiring && clock_mono() >= i->deadline_ns;
}

static bool behind_started(const struct instances *list)
{
	vec_each (list, at)
		if ((*at)->stage <= STAGE_STARTING)
			return false;
	return true;
}

static bool services_started(struct instance *i)
{
	bool started;

	pthread_mutex_lock(&i->lock);
	started = behind_started(&i->uses);
	pthread_mutex_unlock(&i->lock);
	return started;
}

/* Notes for each how far those upstream are that retire. Who steps in the meantime has come further
 * than that, which the next round sees. */
static void note_upstream(struct host *host)
{
	vec_each (&host->instances, at)
		(*at)->upstream = STAGE_ABANDONED;
	vec_each (&host->instances, at) {
		if (!(*at)->retiring)
			continue;
		vec_each (&(*at)->downstream, to)
			if ((*at)->stage < (*to)->upstream)
				(*to)->upstream = (*at)->stage;
	}
}

/* Whether everyone upstream that retires with it has come as far. */
static bool upstream_at(const struct instance *i, enum stage stage)
{
	return i->upstream >= stage;
}

/* Whether nobody uses the tables of this service any more. */
static bool unused(struct instance *service)
{
	if (service->offers.n == 0)
		return true;
	vec_each (&service->host->instances, at) {
		bool uses;

		pthread_mutex_lock(&(*at)->lock);
		uses = (*at)->stage != STAGE_GONE && instances_have(&(*at)->uses, service);
		pthread_mutex_unlock(&(*at)->lock);
		if (uses)
			return false;
	}
	return true;
}

/* It never did anything, and need not, unless somebody has sent it batches. */
static bool give_up_new(struct instance *i)
{
	if (!upstream_at(i, STAGE_STOPPED) || !unused(i) || succession_must_wait(i))
		return false;
	queue_close(i, "not_started");
	return lifecycle_destroy(i);
}

static bool leave_new(struct instance *i)
{
	if (i->retiring && (overdue(i) || queue_idle(i)))
		return give_up_new(i);
	if (!i->host->running || !i->wired || !behind_started(&i->downstream) ||
	    !services_started(i) || succession_must_wait(i))
		return false;
	lifecycle_start(i);
	return true;
}

static bool leave_live(struct instance *i)
{
	if (!i->retiring || succession_goes_on(i))
		return false;
	if (overdue(i)) {
		queue_close(i, "deadline");
		i->stage = STAGE_DRAINED;
		return true;
	}
	if (!upstream_at(i, STAGE_DRAINED) || !queue_idle(i))
		return false;
	lifecycle_drain(i);
	return true;
}

static bool leave_draining(struct instance *i)
{
	bool over = atomic_load(&i->drain_over) && atomic_load(&i->drained);

	if (!over && !overdue(i))
		return false;
	if (!over) {
		log_printf(&i->host->log, ANDIRON_LOG_WARN, i->name,
			   "was not done at the drain deadline; what it still holds is lost");
		queue_close(i, "deadline");
	}
	i->stage = STAGE_DRAINED;
	return true;
}

static bool leave_drained(struct instance *i)
{
	if (!upstream_at(i, STAGE_STOPPED) || !unused(i))
		return false;
	queue_close(i, "stopped");
	lifecycle_stop(i);
	return true;
}

static bool step(struct instance *i)
{
	switch (i->stage) {
	case STAGE_NEW:
		return leave_new(i);
	case STAGE_LIVE:
		return leave_live(i);
	case STAGE_FAILED:
		if (i->retiring)
			i->stage = STAGE_DRAINED;
		return i->retiring;
	case STAGE_DRAINING:
		return leave_draining(i);
	case STAGE_DRAINED:
		return leave_drained(i);
	case STAGE_STOPPED:
		return lifecycle_destroy(i);
	case STAGE_STARTING:
	case STAGE_STOPPING:
	case STAGE_DESTROYING:
	case STAGE_GONE:
	case STAGE_ABANDONED:
		break;
	}
	return false;
}

/* A service may outlive its deadline for the sake of those that use it, but not for one that was
 * left behind. */
static bool waits_for_abandoned(const struct instance *service)
{
	vec_each (&service->host->instances, at)
		if ((*at)->stage == STAGE_ABANDONED && instances_have(&(*at)->uses, service))
			return true;
	return false;
}

/* A call that does not return must not keep the process from ending. Its memory and its thread are
 * left as they are. */
static void abandon(struct instance *i)
{
	bool called = i->stage == STAGE_STARTING || i->stage >= STAGE_STOPPING;

	if (i->stage >= STAGE_GONE || !i->retiring || clock_mono() < i->deadline_ns + GRACE_NS)
		return;
	if (!called && !waits_for_abandoned(i))
		return;
	if (called)
		log_printf(&i->host->log, ANDIRON_LOG_ERROR, i->name,
			   "does not come back from a call into it; leaving it behind");
	i->stage = STAGE_ABANDONED;
	i->host->stuck = true;
	host_poke(i->host);
}

static void set_deadline(struct host *host)
{
	int64_t next = INT64_MAX, now = clock_mono();

	vec_each (&host->instances, at) {
		const struct instance *i = *at;
		int64_t due = i->deadline_ns > now ? i->deadline_ns : i->deadline_ns + GRACE_NS;

		if (i->retiring && i->stage < STAGE_GONE && due > now && due < next)
			next = due;
	}
	if (next < INT64_MAX)
		loop_timer_set(&host->loop, &host->deadline, next);
	else
		loop_timer_cancel(&host->loop, &host->deadline);
}

/* Says once that everything runs, or has failed to. Work that an instance has begun over the
 * targets it was given at its start belongs to its start: a sampler selects by them. */
static void tell_live(struct host *host)
{
	if (host->live || !host->running || host->n_stops_seen > 0)
		return;
	vec_each (&host->instances, at)
		if ((*at)->stage <= STAGE_STARTING ||
		    ((*at)->stage == STAGE_LIVE && strand_held(&(*at)->strand)))
			return;
	host->live = true;
	if (host->options.live)
		host->options.live(host->options.context, host->failed.n ? host->failed.p : NULL);
}

void scheduler_advance(struct host *host)
{
	bool more;

	do {
		more = false;
		note_upstream(host);
		vec_each (&host->instances, at)
			more = step(*at) || more;
	} while (more);
	lifecycle_reap(host);
	vec_each (&host->instances, at)
		abandon(*at);
	set_deadline(host);
	tell_live(host);
}

void scheduler_retire(struct instance *i, int64_t deadline_ns)
{
	if (!i->retiring || deadline_ns < i->deadline_ns)
		i->deadline_ns = deadline_ns;
	i->retiring = true;
	host_poke(i->host);
}

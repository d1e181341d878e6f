/* SPDX-License-Identifier: Apache-2.0 */
/* Timers, posted functions and work. Contracts in callbacks.h.
 *
 * A timer is cancelled from whatever thread its component runs on while the loop may be about to
 * fire it. So cancelling only marks it and leaves the freeing to the loop thread: to the job if one
 * is waiting, else to a task. */
#include "host/services/callbacks.h"

#include "base/check.h"
#include "base/clock.h"
#include "host/state.h"

#include <errno.h>

struct timer {
	struct loop_timer base;
	struct job job;
	struct loop_task reap;
	struct instance *instance;
	uint64_t id;
	int64_t every_ns;
	andiron_call_fn fn;
	void *arg;
	bool waiting; /* its job is in the strand */
	bool removed;
};

static void timer_free(struct timer *t)
{
	loop_timer_fini(&t->instance->host->loop, &t->base);
	instance_unref(t->instance);
	free(t);
}

static void timer_reap(struct loop_task *task)
{
	timer_free(container_of(task, struct timer, reap));
}

/* The next tick that is still to come; those that were missed are one. */
static int64_t next_tick(const struct timer *t)
{
	int64_t late = clock_mono() - t->base.at_ns;

	return t->base.at_ns + (late > 0 ? (late / t->every_ns + 1) * t->every_ns : t->every_ns);
}

static void timer_fire(struct loop_timer *base)
{
	struct timer *t = container_of(base, struct timer, base);
	struct instance *i = t->instance;
	bool submit;

	check(loop_is_here(&i->host->loop) && base->place == 0);
	pthread_mutex_lock(&i->lock);
	submit = !t->removed && !t->waiting;
	if (!t->removed && t->every_ns)
		loop_timer_set(&i->host->loop, base, next_tick(t));
	t->waiting = t->waiting || submit;
	pthread_mutex_unlock(&i->lock);
	if (submit)
		strand_submit(&i->strand, &t->job);
}

static void timer_call(struct job *job)
{
	struct timer *t = container_of(job, struct timer, job);
	struct instance *i = t->instance;
	bool removed, once = t->every_ns == 0;

	pthread_mutex_lock(&i->lock);
	check(t->waiting);
	t->waiting = false;
	removed = t->removed;
	if (once && !removed) {
		slots_remove(&i->timers, t->id);
		t->removed = true;
	}
	pthread_mutex_unlock(&i->lock);
	if (!removed)
		t->fn(t->arg);
	/* A periodic one that was cancelled by its own function is reaped. */
	if (removed || once)
		timer_free(t);
}

static int64_t later(int64_t after_ns)
{
	int64_t at;

	return __builtin_add_overflow(clock_mono(), after_ns > 0 ? after_ns : 0, &at) ? INT64_MAX
										      : at;
}

int calls_timer_set(struct instance *i, int64_t after_ns, int64_t every_ns, andiron_call_fn fn,
		    void *arg, uint64_t *ret_timer)
{
	struct timer *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	if (loop_timer_init(&i->host->loop, &t->base, timer_fire) < 0) {
		free(t);
		return -ENOMEM;
	}
	t->job.light = timer_call;
	t->reap.run = timer_reap;
	t->instance = instance_ref(i);
	t->every_ns = every_ns > 0 ? every_ns : 0;
	t->fn = fn;
	t->arg = arg;
	pthread_mutex_lock(&i->lock);
	t->id = slots_add(&i->timers, t);
	if (t->id) {
		*ret_timer = t->id;
		loop_timer_set(&i->host->loop, &t->base, later(after_ns));
	}
	pthread_mutex_unlock(&i->lock);
	if (t->id)
		return 0;
	timer_free(t);
	return -ENOMEM;
}

void calls_timer_cancel(struct instance *i, uint64_t timer)
{
	struct timer *t;
	bool reap = false;

	pthread_mutex_lock(&i->lock);
	t = slots_get(&i->timers, timer);
	if (t) {
		slots_remove(&i->timers, timer);
		t->removed = true;
		loop_timer_cancel(&i->host->loop, &t->base);
		reap = !t->waiting;
	}
	pthread_mutex_unlock(&i->lock);
	if (reap)
		loop_post(&i->host->loop, &t->reap);
}

struct posted {
	struct job job;
	andiron_call_fn fn;
	void *arg;
};

static void posted_call(struct job *job)
{
	struct posted *p = container_of(job, struct posted, job);

	p->fn(p->arg);
	free(p);
}

int calls_post(struct instance *i, andiron_call_fn fn, void *arg)
{
	struct posted *p = malloc(sizeof(*p));

	if (!p)
		return -ENOMEM;
	*p = (struct posted){.job.light = posted_call, .fn = fn, .arg = arg};
	if (strand_submit(&i->strand, &p->job))
		return 0;
	free(p);
	return -ESHUTDOWN;
}

struct work {
	struct worker_task task;
	struct job job;
	struct instance *instance;
	andiron_call_fn run, done;
	void *arg;
};

static void work_run(struct worker_task *task)
{
	struct work *w = container_of(task, struct work, task);

	bool taken;

	w->run(w->arg);
	taken = strand_submit(&w->instance->strand, &w->job);
	check(taken); /* the strand is held */
}

static void work_done(struct job *job)
{
	struct work *w = container_of(job, struct work, job);
	struct instance *i = w->instance;

	if (w->done)
		w->done(w->arg);
	free(w);
	strand_release(&i->strand);
	host_poke(i->host);
}

int calls_work(struct instance *i, andiron_call_fn run, andiron_call_fn done, void *arg)
{
	struct work *w = malloc(sizeof(*w));

	if (!w)
		return -ENOMEM;
	*w = (struct work){
		.job.light = work_done, .instance = i, .run = run, .done = done, .arg = arg};
	w->task.run = work_run;
	if (!strand_hold(&i->strand)) {
		free(w);
		return -ESHUTDOWN;
	}
	workers_submit(&i->host->workers, &w->task);
	return 0;
}

static void clear_timers(struct instance *i)
{
	uint64_t id;
	size_t n = 0;

	do {
		id = 0;
		pthread_mutex_lock(&i->lock);
		for (; n < i->timers.list.n && !id; n++)
			if (i->timers.list.p[n].p)
				id = ((struct timer *)i->timers.list.p[n].p)->id;
		pthread_mutex_unlock(&i->lock);
		calls_timer_cancel(i, id);
	} while (id);
}

void calls_clear(struct instance *i)
{
	clear_timers(i);
	calls_clear_watches(i);
	calls_kill_children(i);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Timers, watched descriptors, posted functions and work. Contracts in callbacks.h.
 *
 * A timer or watch is removed from whatever thread its component runs on while the loop may be
 * about to fire it. So removing only marks it and leaves the freeing to the loop thread: to its job
 * if that waits in the strand, else to a task of the loop.
 *
 * To the component a watch is level-triggered; towards epoll it is one-shot and armed again after
 * the call, so that a component that is busy does not make the loop spin. */
#include "host/services/callbacks.h"

#include "base/check.h"
#include "base/clock.h"
#include "host/state.h"

#include <errno.h>
#include <sys/epoll.h>

_Static_assert(ANDIRON_WATCH_IN == EPOLLIN && ANDIRON_WATCH_OUT == EPOLLOUT, "the same bits");
#define EVENTS (ANDIRON_WATCH_IN | ANDIRON_WATCH_OUT)

/* What a timer and a watch have in common; under the instance's lock but for `arg`. */
struct registration {
	struct job job;
	struct loop_task reap;
	struct instance *instance;
	uint64_t id;
	void *arg;
	bool waiting; /* its job is in the strand */
	bool removed;
};

struct timer {
	struct registration base;
	struct loop_timer timer;
	int64_t every_ns;
	andiron_call_fn fn;
};

struct watch {
	struct registration base;
	struct loop_watch watch;
	uint32_t wanted, seen;
	andiron_watch_fn fn;
};

/* `clear` reads lists of both. */
_Static_assert(offsetof(struct timer, base) == 0 && offsetof(struct watch, base) == 0,
	       "comes first");

static void registration_init(struct registration *r, struct instance *i, void *arg,
			      void (*call)(struct job *job), void (*reap)(struct loop_task *task))
{
	r->job.light = call;
	r->reap.run = reap;
	r->instance = instance_ref(i);
	r->arg = arg;
}

/* Puts its job into the strand unless it is there; further events are merged into it. With the
 * instance locked, which it unlocks. */
static void submit(struct registration *r)
{
	struct instance *i = r->instance;
	bool idle = !r->removed && !r->waiting;

	r->waiting = r->waiting || idle;
	pthread_mutex_unlock(&i->lock);
	if (idle)
		strand_submit(&i->strand, &r->job);
}

/* Takes it from the list. Whether the caller has to reap it; else its job does. With the instance
 * locked. */
static bool remove_from(struct slots *list, struct registration *r)
{
	check(!r->removed);
	slots_remove(list, r->id);
	r->removed = true;
	return !r->waiting;
}

/* --- Timers --- */

static void timer_free(struct timer *t)
{
	loop_timer_fini(&t->base.instance->host->loop, &t->timer);
	instance_unref(t->base.instance);
	free(t);
}

static void timer_reap(struct loop_task *task)
{
	timer_free(container_of(task, struct timer, base.reap));
}

/* The next tick that is still to come; those that were missed are one. */
static int64_t next_tick(const struct timer *t)
{
	int64_t late = clock_mono() - t->timer.at_ns;

	return t->timer.at_ns + (late > 0 ? (late / t->every_ns + 1) * t->every_ns : t->every_ns);
}

static void timer_fire(struct loop_timer *timer)
{
	struct timer *t = container_of(timer, struct timer, timer);
	struct instance *i = t->base.instance;

	check(loop_is_here(&i->host->loop) && timer->place == 0);
	pthread_mutex_lock(&i->lock);
	if (!t->base.removed && t->every_ns)
		loop_timer_set(&i->host->loop, timer, next_tick(t));
	submit(&t->base);
}

static void timer_call(struct job *job)
{
	struct timer *t = container_of(job, struct timer, base.job);
	struct instance *i = t->base.instance;
	bool removed, once = t->every_ns == 0;

	pthread_mutex_lock(&i->lock);
	check(t->base.waiting);
	t->base.waiting = false;
	removed = t->base.removed;
	if (once && !removed)
		remove_from(&i->timers, &t->base);
	pthread_mutex_unlock(&i->lock);
	if (!removed)
		t->fn(t->base.arg);
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
	if (loop_timer_init(&i->host->loop, &t->timer, timer_fire) < 0) {
		free(t);
		return -ENOMEM;
	}
	registration_init(&t->base, i, arg, timer_call, timer_reap);
	t->every_ns = every_ns > 0 ? every_ns : 0;
	t->fn = fn;
	pthread_mutex_lock(&i->lock);
	t->base.id = slots_add(&i->timers, t);
	if (t->base.id) {
		*ret_timer = t->base.id;
		loop_timer_set(&i->host->loop, &t->timer, later(after_ns));
	}
	pthread_mutex_unlock(&i->lock);
	if (t->base.id)
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
		reap = remove_from(&i->timers, &t->base);
		loop_timer_cancel(&i->host->loop, &t->timer);
	}
	pthread_mutex_unlock(&i->lock);
	if (reap)
		loop_post(&i->host->loop, &t->base.reap);
}

/* --- Watches --- */

static void watch_free(struct watch *w)
{
	instance_unref(w->base.instance);
	free(w);
}

static void watch_reap(struct loop_task *task)
{
	watch_free(container_of(task, struct watch, base.reap));
}

static void watch_ready(struct loop_watch *watch, uint32_t events)
{
	struct watch *w = container_of(watch, struct watch, watch);

	pthread_mutex_lock(&w->base.instance->lock);
	w->seen |= events & (EPOLLHUP | EPOLLERR) ? EVENTS : events & EVENTS;
	submit(&w->base);
}

static void watch_call(struct job *job)
{
	struct watch *w = container_of(job, struct watch, base.job);
	struct instance *i = w->base.instance;
	uint32_t events;
	bool removed;

	pthread_mutex_lock(&i->lock);
	check(w->base.waiting);
	w->base.waiting = false;
	removed = w->base.removed;
	events = w->seen;
	w->seen = 0;
	pthread_mutex_unlock(&i->lock);
	if (removed) {
		watch_free(w);
		return;
	}
	w->fn(w->base.arg, w->watch.fd, events);
	/* If the call removed it, it is reaped later, on this thread. */
	pthread_mutex_lock(&i->lock);
	if (!w->base.removed)
		loop_watch_arm(&i->host->loop, &w->watch, w->wanted);
	pthread_mutex_unlock(&i->lock);
}

int calls_watch_add(struct instance *i, int fd, uint32_t events, andiron_watch_fn fn, void *arg,
		    uint64_t *ret_watch)
{
	struct watch *w = calloc(1, sizeof(*w));
	int r = -ENOMEM;

	if (!w)
		return -ENOMEM;
	registration_init(&w->base, i, arg, watch_call, watch_reap);
	w->watch.ready = watch_ready;
	w->watch.fd = fd;
	w->wanted = events & EVENTS;
	w->fn = fn;
	pthread_mutex_lock(&i->lock);
	w->base.id = slots_add(&i->watches, w);
	if (w->base.id)
		r = loop_watch_add(&i->host->loop, &w->watch, w->wanted);
	if (r < 0)
		slots_remove(&i->watches, w->base.id);
	else
		*ret_watch = w->base.id;
	pthread_mutex_unlock(&i->lock);
	if (r < 0)
		watch_free(w);
	return r;
}

int calls_watch_modify(struct instance *i, uint64_t watch, uint32_t events)
{
	struct watch *w;
	int r = -ENOENT;

	pthread_mutex_lock(&i->lock);
	w = slots_get(&i->watches, watch);
	if (w) {
		w->wanted = events & EVENTS;
		r = loop_watch_arm(&i->host->loop, &w->watch, w->wanted);
	}
	pthread_mutex_unlock(&i->lock);
	return r;
}

void calls_watch_remove(struct instance *i, uint64_t watch)
{
	struct watch *w;
	bool reap = false;

	pthread_mutex_lock(&i->lock);
	w = slots_get(&i->watches, watch);
	if (w) {
		reap = remove_from(&i->watches, &w->base);
		loop_watch_remove(&i->host->loop, &w->watch);
	}
	pthread_mutex_unlock(&i->lock);
	if (reap)
		loop_post(&i->host->loop, &w->base.reap);
}

/* --- Posted functions and work --- */

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

/* Takes all that a list holds away by `take`. */
static void clear(struct instance *i, struct slots *list,
		  void (*take)(struct instance *i, uint64_t id))
{
	size_t n = 0;
	uint64_t id;

	do {
		id = 0;
		pthread_mutex_lock(&i->lock);
		for (; n < list->list.n && !id; n++)
			if (list->list.p[n].p)
				id = ((struct registration *)list->list.p[n].p)->id;
		pthread_mutex_unlock(&i->lock);
		take(i, id);
	} while (id);
}

void calls_clear(struct instance *i)
{
	clear(i, &i->timers, calls_timer_cancel);
	clear(i, &i->watches, calls_watch_remove);
	calls_kill_children(i);
}

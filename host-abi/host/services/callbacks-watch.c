/* SPDX-License-Identifier: Apache-2.0 */
/* Watched descriptors. Contracts in callbacks.h. To the component they are level-triggered; towards
 * epoll they are one-shot and armed again after the call, so that a component that is busy does not
 * make the loop spin. Removal is left to the loop thread as with timers (callbacks.c). */
#include "host/services/callbacks.h"

#include "base/check.h"
#include "host/state.h"

#include <errno.h>
#include <sys/epoll.h>

_Static_assert(ANDIRON_WATCH_IN == EPOLLIN && ANDIRON_WATCH_OUT == EPOLLOUT, "the same bits");
#define EVENTS (ANDIRON_WATCH_IN | ANDIRON_WATCH_OUT)

struct watch {
	struct loop_watch base;
	struct job job;
	struct loop_task reap;
	struct instance *instance;
	uint64_t id;
	uint32_t wanted, seen;
	andiron_watch_fn fn;
	void *arg;
	bool waiting, removed;
};

static void watch_free(struct watch *w)
{
	instance_unref(w->instance);
	free(w);
}

static void watch_reap(struct loop_task *task)
{
	watch_free(container_of(task, struct watch, reap));
}

static void watch_ready(struct loop_watch *base, uint32_t events)
{
	struct watch *w = container_of(base, struct watch, base);
	struct instance *i = w->instance;
	bool submit;

	pthread_mutex_lock(&i->lock);
	w->seen |= events & (EPOLLHUP | EPOLLERR) ? EVENTS : events & EVENTS;
	submit = !w->removed && !w->waiting;
	w->waiting = w->waiting || submit;
	pthread_mutex_unlock(&i->lock);
	if (submit)
		strand_submit(&i->strand, &w->job);
}

static void watch_call(struct job *job)
{
	struct watch *w = container_of(job, struct watch, job);
	struct instance *i = w->instance;
	uint32_t events;
	bool removed;

	pthread_mutex_lock(&i->lock);
	check(w->waiting);
	w->waiting = false;
	removed = w->removed;
	events = w->seen;
	w->seen = 0;
	pthread_mutex_unlock(&i->lock);
	if (removed) {
		watch_free(w);
		return;
	}
	w->fn(w->arg, w->base.fd, events);
	/* If the call removed it, it is reaped later, on this thread. */
	pthread_mutex_lock(&i->lock);
	if (!w->removed)
		loop_watch_arm(&i->host->loop, &w->base, w->wanted);
	pthread_mutex_unlock(&i->lock);
}

int calls_watch_add(struct instance *i, int fd, uint32_t events, andiron_watch_fn fn, void *arg,
		    uint64_t *ret_watch)
{
	struct watch *w = calloc(1, sizeof(*w));
	int r = -ENOMEM;

	if (!w)
		return -ENOMEM;
	w->base.ready = watch_ready;
	w->base.fd = fd;
	w->job.light = watch_call;
	w->reap.run = watch_reap;
	w->instance = instance_ref(i);
	w->wanted = events & EVENTS;
	w->fn = fn;
	w->arg = arg;
	pthread_mutex_lock(&i->lock);
	w->id = slots_add(&i->watches, w);
	if (w->id)
		r = loop_watch_add(&i->host->loop, &w->base, w->wanted);
	if (r < 0)
		slots_remove(&i->watches, w->id);
	else
		*ret_watch = w->id;
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
		r = loop_watch_arm(&i->host->loop, &w->base, w->wanted);
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
		slots_remove(&i->watches, watch);
		w->removed = true;
		loop_watch_remove(&i->host->loop, &w->base);
		reap = !w->waiting;
	}
	pthread_mutex_unlock(&i->lock);
	if (reap)
		loop_post(&i->host->loop, &w->reap);
}

void calls_clear_watches(struct instance *i)
{
	uint64_t id;
	size_t n = 0;

	do {
		id = 0;
		pthread_mutex_lock(&i->lock);
		for (; n < i->watches.list.n && !id; n++)
			if (i->watches.list.p[n].p)
				id = ((struct watch *)i->watches.list.p[n].p)->id;
		pthread_mutex_unlock(&i->lock);
		calls_watch_remove(i, id);
	} while (id);
}

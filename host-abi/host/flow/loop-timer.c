/* SPDX-License-Identifier: Apache-2.0 */
/* The loop's timers: a binary heap of pointers, each timer knowing its place, so that cancelling is
 * O(log n). Room is made when a timer is initialised, because setting one again from its own
 * callback must not fail. */
#include "base/check.h"
#include "base/clock.h"
#include "host/flow/loop.h"

#include <errno.h>
#include <limits.h>

static void put(struct loop *loop, size_t place, struct loop_timer *timer)
{
	loop->heap.p[place - 1] = timer;
	timer->place = place;
}

static int64_t at(const struct loop *loop, size_t place)
{
	return loop->heap.p[place - 1]->at_ns;
}

static void sift_up(struct loop *loop, struct loop_timer *timer)
{
	size_t place = timer->place;

	for (; place > 1 && at(loop, place / 2) > timer->at_ns; place /= 2)
		put(loop, place, loop->heap.p[place / 2 - 1]);
	put(loop, place, timer);
}

static void sift_down(struct loop *loop, struct loop_timer *timer)
{
	size_t place = timer->place, n = loop->heap.n;

	for (;;) {
		size_t child = place * 2;

		if (child < n && at(loop, child + 1) < at(loop, child))
			child++;
		if (child > n || at(loop, child) >= timer->at_ns)
			break;
		put(loop, place, loop->heap.p[child - 1]);
		place = child;
	}
	put(loop, place, timer);
}

static void take_off(struct loop *loop, struct loop_timer *timer)
{
	struct loop_timer *last;
	size_t place = timer->place;

	if (!place)
		return;
	check(place <= loop->heap.n && loop->heap.p[place - 1] == timer);
	last = loop->heap.p[--loop->heap.n];
	timer->place = 0;
	if (last == timer)
		return;
	put(loop, place, last);
	sift_up(loop, last);
	sift_down(loop, last);
}

int loop_timer_init(struct loop *loop, struct loop_timer *timer,
		    void (*fire)(struct loop_timer *timer))
{
	bool room;

	pthread_mutex_lock(&loop->lock);
	room = vec_grow((void **)&loop->heap.p, &loop->heap.capacity, loop->n_timers + 1,
			sizeof(*loop->heap.p));
	loop->n_timers += room;
	pthread_mutex_unlock(&loop->lock);
	*timer = (struct loop_timer){.fire = fire};
	return room ? 0 : -ENOMEM;
}

void loop_timer_fini(struct loop *loop, struct loop_timer *timer)
{
	pthread_mutex_lock(&loop->lock);
	take_off(loop, timer);
	check(loop->n_timers > 0);
	loop->n_timers--;
	pthread_mutex_unlock(&loop->lock);
}

void loop_timer_set(struct loop *loop, struct loop_timer *timer, int64_t at_ns)
{
	bool wake;

	pthread_mutex_lock(&loop->lock);
	take_off(loop, timer);
	check(loop->heap.n < loop->n_timers);
	timer->at_ns = at_ns;
	timer->place = ++loop->heap.n;
	sift_up(loop, timer);
	wake = timer->place == 1 && !loop->woken && !pthread_equal(loop->thread, pthread_self());
	loop->woken = loop->woken || wake;
	pthread_mutex_unlock(&loop->lock);
	if (wake)
		loop_wake(loop);
}

void loop_timer_cancel(struct loop *loop, struct loop_timer *timer)
{
	pthread_mutex_lock(&loop->lock);
	take_off(loop, timer);
	pthread_mutex_unlock(&loop->lock);
}

struct loop_timer *loop_timer_due(struct loop *loop, int64_t now)
{
	struct loop_timer *timer = loop->heap.n ? loop->heap.p[0] : NULL;

	if (!timer || timer->at_ns > now)
		return NULL;
	take_off(loop, timer);
	return timer;
}

int loop_timer_wait(const struct loop *loop, int64_t now)
{
	int64_t ms;

	if (!loop->heap.n)
		return -1;
	if (at(loop, 1) <= now)
		return 0;
	ms = (at(loop, 1) - now - 1) / NS_PER_MSEC + 1;
	return ms > INT_MAX ? INT_MAX : (int)ms;
}

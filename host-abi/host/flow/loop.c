/* SPDX-License-Identifier: Apache-2.0 */
/* The loop. Contracts in loop.h.
 *
 * epoll hands back ids and not pointers, because a watch that was removed by a worker may still
 * have an event in the loop's hands; an id that was given back finds nothing. Tasks are taken one
 * at a time and not as a whole list, so that a nested round sees what the outer one has not run
 * yet. */
#include "host/flow/loop.h"

#include "base/check.h"
#include "base/clock.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define EVENTS_A_ROUND 32
#define WAKE_ID        UINT64_MAX

static int open_fds(struct loop *loop)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = WAKE_ID};

	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd < 0)
		return -errno;
	loop->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (loop->event_fd < 0)
		return -errno;
	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->event_fd, &event) < 0)
		return -errno;
	return 0;
}

int loop_init(struct loop *loop, struct error *err)
{
	int r;

	*loop = (struct loop){.epoll_fd = -1, .event_fd = -1};
	loop->tail = &loop->tasks;
	pthread_mutex_init(&loop->lock, NULL);
	loop->thread = pthread_self();
	r = open_fds(loop);
	if (r < 0) {
		loop_fini(loop);
		return error_errno(err, r, "cannot make the event loop's descriptors");
	}
	return 0;
}

void loop_fini(struct loop *loop)
{
	check(!loop->tasks && loop->heap.n == 0);
	if (loop->event_fd >= 0)
		close(loop->event_fd);
	if (loop->epoll_fd >= 0)
		close(loop->epoll_fd);
	slots_free(&loop->watches);
	vec_free(&loop->heap);
	pthread_mutex_destroy(&loop->lock);
	*loop = (struct loop){.epoll_fd = -1, .event_fd = -1};
}

bool loop_is_here(struct loop *loop)
{
	bool here;

	pthread_mutex_lock(&loop->lock);
	here = pthread_equal(loop->thread, pthread_self());
	pthread_mutex_unlock(&loop->lock);
	return here;
}

void loop_adopt(struct loop *loop)
{
	pthread_mutex_lock(&loop->lock);
	loop->thread = pthread_self();
	pthread_mutex_unlock(&loop->lock);
}

void loop_wake(const struct loop *loop)
{
	const uint64_t one = 1;
	int saved = errno;
	/* The counter being full means that the loop will wake all the same. */
	ssize_t ignored = write(loop->event_fd, &one, sizeof(one));

	(void)ignored;
	errno = saved;
}

void loop_post(struct loop *loop, struct loop_task *task)
{
	bool wake;

	check(task->run);
	pthread_mutex_lock(&loop->lock);
	task->next = NULL;
	*loop->tail = task;
	loop->tail = &task->next;
	loop->n_tasks++;
	/* On the loop thread the list is looked at before it sleeps. */
	wake = !loop->woken && !pthread_equal(loop->thread, pthread_self());
	loop->woken = loop->woken || wake;
	pthread_mutex_unlock(&loop->lock);
	if (wake)
		loop_wake(loop);
}

static struct loop_task *take_task(struct loop *loop)
{
	struct loop_task *task;

	pthread_mutex_lock(&loop->lock);
	task = loop->tasks;
	if (task) {
		check(loop->n_tasks > 0);
		loop->tasks = task->next;
		loop->n_tasks--;
		if (!loop->tasks)
			loop->tail = &loop->tasks;
	}
	pthread_mutex_unlock(&loop->lock);
	return task;
}

/* As many as were there at first: one that posts itself again must not keep timers and descriptors
 * waiting. */
static void run_tasks(struct loop *loop)
{
	struct loop_task *task;
	size_t n;

	pthread_mutex_lock(&loop->lock);
	n = loop->n_tasks;
	pthread_mutex_unlock(&loop->lock);
	while (n-- > 0 && (task = take_task(loop)))
		task->run(task);
}

static void run_timers(struct loop *loop)
{
	int64_t now = clock_mono();
	struct loop_timer *timer;

	do {
		pthread_mutex_lock(&loop->lock);
		timer = loop_timer_due(loop, now);
		pthread_mutex_unlock(&loop->lock);
		if (timer)
			timer->fire(timer);
	} while (timer);
}

static void drain_wake(struct loop *loop)
{
	uint64_t n;
	/* Read first: a write that came between would be read away with the old one, and `woken`
	 * would stay set with nothing left to wake the loop. */
	ssize_t ignored = read(loop->event_fd, &n, sizeof(n));

	(void)ignored;
	pthread_mutex_lock(&loop->lock);
	loop->woken = false;
	pthread_mutex_unlock(&loop->lock);
}

static void dispatch(struct loop *loop, const struct epoll_event *event)
{
	struct loop_watch *watch;

	if (event->data.u64 == WAKE_ID) {
		drain_wake(loop);
		return;
	}
	pthread_mutex_lock(&loop->lock);
	watch = slots_get(&loop->watches, event->data.u64);
	pthread_mutex_unlock(&loop->lock);
	if (watch)
		watch->ready(watch, event->events);
}

void loop_step(struct loop *loop)
{
	struct epoll_event events[EVENTS_A_ROUND];
	int timeout, n;

	check(loop_is_here(loop));
	pthread_mutex_lock(&loop->lock);
	timeout = loop->tasks ? 0 : loop_timer_wait(loop, clock_mono());
	pthread_mutex_unlock(&loop->lock);
	n = epoll_wait(loop->epoll_fd, events, EVENTS_A_ROUND, timeout);
	for (int i = 0; i < n; i++)
		dispatch(loop, &events[i]);
	run_timers(loop);
	run_tasks(loop);
}

/* The lock is held. */
static int arm(struct loop *loop, struct loop_watch *watch, uint32_t events)
{
	struct epoll_event event = {.events = events | EPOLLONESHOT, .data.u64 = watch->id};
	int op = watch->registered ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

	/* Without events epoll would still report hang-ups, for ever. */
	if (!events) {
		if (watch->registered)
			epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
		watch->registered = false;
		return 0;
	}
	if (epoll_ctl(loop->epoll_fd, op, watch->fd, &event) < 0)
		return -errno;
	watch->registered = true;
	return 0;
}

int loop_watch_add(struct loop *loop, struct loop_watch *watch, uint32_t events)
{
	int r = -ENOMEM;

	check(watch->ready);
	pthread_mutex_lock(&loop->lock);
	watch->registered = false;
	watch->id = slots_add(&loop->watches, watch);
	if (watch->id)
		r = arm(loop, watch, events);
	if (r < 0)
		slots_remove(&loop->watches, watch->id);
	pthread_mutex_unlock(&loop->lock);
	return r;
}

int loop_watch_arm(struct loop *loop, struct loop_watch *watch, uint32_t events)
{
	int r;

	pthread_mutex_lock(&loop->lock);
	r = arm(loop, watch, events);
	pthread_mutex_unlock(&loop->lock);
	return r;
}

void loop_watch_remove(struct loop *loop, struct loop_watch *watch)
{
	pthread_mutex_lock(&loop->lock);
	arm(loop, watch, 0);
	slots_remove(&loop->watches, watch->id);
	watch->id = 0;
	pthread_mutex_unlock(&loop->lock);
}

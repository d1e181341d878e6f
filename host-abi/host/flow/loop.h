/* SPDX-License-Identifier: Apache-2.0 */
/* The host's one epoll loop: tasks handed over from any thread, descriptors, and timers. It sleeps
 * until one of them has something to do; an idle loop never wakes.
 *
 * Tasks, watches and timers are embedded in what they belong to. All their callbacks run on the
 * loop thread and without a lock. They may be removed from any thread; the memory around them may
 * only be freed on the loop thread (post a task for that), so a callback that is just about to run
 * never meets freed memory. */
#pragma once

#include "base/error.h"
#include "host/flow/handle-table.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The struct that a member is embedded in. */
#define container_of(ptr, type, member)                                                            \
	((type *)(void *)((char *)(ptr) - __builtin_offsetof(type, member)))

struct loop_task {
	struct loop_task *next;
	void (*run)(struct loop_task *task);
};

struct loop_watch {
	void (*ready)(struct loop_watch *watch, uint32_t epoll_events);
	int fd;
	bool registered; /* the epoll set knows the descriptor */
	uint64_t id;
};

struct loop_timer {
	void (*fire)(struct loop_timer *timer);
	int64_t at_ns; /* CLOCK_MONOTONIC */
	size_t place;  /* in the heap, counted from 1; 0: not set */
};

struct loop {
	pthread_mutex_t lock;
	pthread_t thread;
	int epoll_fd;
	int event_fd;
	bool woken; /* the eventfd was written and not yet read */
	size_t n_tasks;
	struct loop_task *tasks, **tail;
	struct slots watches;
	size_t n_timers; /* that exist, set or not: the heap has room for all */
	VEC(struct loop_timer *) heap;
};

int loop_init(struct loop *loop, struct error *err);
void loop_fini(struct loop *loop);

/* Whether the caller is the loop thread: the one that called loop_init, or later loop_adopt. [any]
 */
bool loop_is_here(struct loop *loop);
void loop_adopt(struct loop *loop);

/* Runs the task once, later. It must not be posted again before it runs. [any], O(1), cannot fail.
 */
void loop_post(struct loop *loop, struct loop_task *task);

/* Makes the loop look again. [any], async-signal-safe. */
void loop_wake(const struct loop *loop);

/* Watches are one-shot: after `ready` the descriptor is silent until it is armed again, so one
 * whose owner is busy does not spin. events: EPOLLIN, EPOLLOUT; none silences it. 0 or negative
 * errno (-EEXIST). [any]. */
int loop_watch_add(struct loop *loop, struct loop_watch *watch, uint32_t events);
int loop_watch_arm(struct loop *loop, struct loop_watch *watch, uint32_t events);
void loop_watch_remove(struct loop *loop, struct loop_watch *watch);

/* Makes room for a timer, after which setting it cannot fail. 0 or -ENOMEM. Everything [any]; set
 * and cancel O(log n). */
int loop_timer_init(struct loop *loop, struct loop_timer *timer,
		    void (*fire)(struct loop_timer *timer));
void loop_timer_fini(struct loop *loop, struct loop_timer *timer);
void loop_timer_set(struct loop *loop, struct loop_timer *timer, int64_t at_ns);
void loop_timer_cancel(struct loop *loop, struct loop_timer *timer);

/* For loop.c: takes the first timer that is due off the heap, or NULL; and ms until the next one,
 * rounded up, -1 if none is set. The lock is held. */
struct loop_timer *loop_timer_due(struct loop *loop, int64_t now);
int loop_timer_wait(const struct loop *loop, int64_t now);

/* One round: sleeps unless there is something to do, then does what is ready, what is due and what
 * was posted, and returns. So a caller that waits for a condition looks at it between rounds. May
 * be called from a task (then what the outer round still has in hand waits). */
void loop_step(struct loop *loop);

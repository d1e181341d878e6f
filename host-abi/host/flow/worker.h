/* SPDX-License-Identifier: Apache-2.0 */
/* The host's worker threads, for what blocks or computes. Tasks are embedded in what they belong to
 * and run in the order of submission, as many at a time as there are threads. Threads are started
 * when there is a task and none is idle; they have small stacks and block all signals. */
#pragma once

#include "base/error.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORKERS_MAX 16

struct worker_task {
	struct worker_task *next;
	void (*run)(struct worker_task *task); /* may free the task */
};

struct workers {
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct worker_task *tasks, **tail;
	size_t n_tasks, n_idle, n_threads, max;
	bool stopping;
	pthread_t threads[WORKERS_MAX];
};

void workers_init(struct workers *w, size_t max);

/* Makes sure that there is a thread at all; without one, submitted tasks would never run. 0 or a
 * negative errno. */
int workers_start(struct workers *w, struct error *err);

/* Runs the task once, on a worker. [any], O(1), cannot fail. */
void workers_submit(struct workers *w, struct worker_task *task);

/* Has each thread end once it has no task. One in a task that does not return may come back later
 * and still submit: then `w` must stay where it is for ever. */
void workers_stop(struct workers *w);

/* The same, and waits for all of them, however long they get no CPU: no task may be one that does
 * not return. */
void workers_fini(struct workers *w);

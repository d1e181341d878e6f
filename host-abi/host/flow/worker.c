/* SPDX-License-Identifier: Apache-2.0 */
/* Worker threads. Contracts in worker.h. */
#include "host/flow/worker.h"

#include "base/check.h"

#include <signal.h>

#define STACK_BYTES ((size_t)256 << 10)

void workers_init(struct workers *w, size_t max)
{
	*w = (struct workers){.max = max < WORKERS_MAX ? max : WORKERS_MAX};
	w->tail = &w->tasks;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->more, NULL);
}

static struct worker_task *next_task(struct workers *w)
{
	struct worker_task *task;

	while (!w->tasks && !w->stopping) {
		w->n_idle++;
		pthread_cond_wait(&w->more, &w->lock);
		w->n_idle--;
	}
	task = w->tasks;
	if (!task)
		return NULL;
	check(w->n_tasks > 0);
	w->tasks = task->next;
	w->n_tasks--;
	if (!w->tasks)
		w->tail = &w->tasks;
	return task;
}

static void *work(void *arg)
{
	struct workers *w = arg;
	struct worker_task *task;

	pthread_mutex_lock(&w->lock);
	while ((task = next_task(w))) {
		pthread_mutex_unlock(&w->lock);
		task->run(task);
		pthread_mutex_lock(&w->lock);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

/* The lock is held. A thread inherits the signal mask of its maker. */
static int add_thread(struct workers *w)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int r;

	check(w->n_threads < WORKERS_MAX);
	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&w->threads[w->n_threads], &attr, work, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (r != 0)
		return -r;
	pthread_setname_np(w->threads[w->n_threads], "andiron-worker");
	w->n_threads++;
	return 0;
}

int workers_start(struct workers *w, struct error *err)
{
	int r = 0;

	pthread_mutex_lock(&w->lock);
	if (w->n_threads == 0)
		r = add_thread(w);
	pthread_mutex_unlock(&w->lock);
	return r < 0 ? error_errno(err, r, "cannot start a worker thread") : 0;
}

void workers_submit(struct workers *w, struct worker_task *task)
{
	pthread_mutex_lock(&w->lock);
	check(w->n_threads > 0);
	task->next = NULL;
	*w->tail = task;
	w->tail = &task->next;
	w->n_tasks++;
	/* With one thread at least, failing to add another costs only time. */
	if (w->n_tasks > w->n_idle && w->n_threads < w->max)
		add_thread(w);
	pthread_cond_signal(&w->more);
	pthread_mutex_unlock(&w->lock);
}

void workers_stop(struct workers *w)
{
	pthread_mutex_lock(&w->lock);
	w->stopping = true;
	pthread_cond_broadcast(&w->more);
	pthread_mutex_unlock(&w->lock);
}

void workers_fini(struct workers *w)
{
	workers_stop(w);
	for (size_t i = 0; i < w->n_threads; i++)
		pthread_join(w->threads[i], NULL);
	check(!w->tasks);
	pthread_cond_destroy(&w->more);
	pthread_mutex_destroy(&w->lock);
}

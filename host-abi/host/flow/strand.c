/* SPDX-License-Identifier: Apache-2.0 */
/* Strands. Contracts in strand.h.
 *
 * `busy` is true from the moment a job is handed to a thread until no job is
 * left; whoever finishes one hands on the next. Light jobs always go through
 * the loop's list of tasks and never run inside the call that submitted
 * them: otherwise a component could be called in the middle of another's
 * call, as deep as the graph is. */
#include "host/flow/strand.h"

#include "base/check.h"

static void on_loop(struct loop_task *task);
static void on_worker(struct worker_task *task);

void strand_init(struct strand *s, struct loop *loop, struct workers *workers)
{
	*s = (struct strand){.loop = loop, .workers = workers};
	s->tail = &s->jobs;
	s->on_loop.run = on_loop;
	s->on_worker.run = on_worker;
	pthread_mutex_init(&s->lock, NULL);
}

void strand_fini(struct strand *s)
{
	check(!s->jobs && !s->busy && s->n_holds == 0);
	pthread_mutex_destroy(&s->lock);
}

/* The lock is held. */
static void hand_on(struct strand *s)
{
	struct job *job = s->jobs;

	s->current = job;
	s->busy = job != NULL;
	if (!job)
		return;
	s->jobs = job->next;
	if (!s->jobs)
		s->tail = &s->jobs;
	check(job->heavy || job->light);
	if (job->heavy)
		workers_submit(s->workers, &s->on_worker);
	else
		loop_post(s->loop, &s->on_loop);
}

void strand_leave(struct strand *s)
{
	pthread_mutex_lock(&s->lock);
	check(s->busy);
	hand_on(s);
	pthread_mutex_unlock(&s->lock);
}

static void on_loop(struct loop_task *task)
{
	struct strand *s = container_of(task, struct strand, on_loop);
	struct job *job = s->current;

	check(job && job->light);
	job->light(job);
	strand_leave(s);
}

static void on_worker(struct worker_task *task)
{
	struct strand *s = container_of(task, struct strand, on_worker);
	struct job *job = s->current;
	bool more = job->light != NULL;

	check(job->heavy);
	job->heavy(job);
	if (more)
		loop_post(s->loop, &s->on_loop);
	else
		strand_leave(s);
}

/* The lock is held. */
static void append(struct strand *s, struct job *job)
{
	check(job != s->jobs);
	job->next = NULL;
	*s->tail = job;
	s->tail = &job->next;
	if (!s->busy)
		hand_on(s);
}

bool strand_submit(struct strand *s, struct job *job)
{
	bool open;

	pthread_mutex_lock(&s->lock);
	open = !s->closed;
	if (open)
		append(s, job);
	pthread_mutex_unlock(&s->lock);
	return open;
}

bool strand_cancel(struct strand *s, struct job *job)
{
	bool found = false;

	pthread_mutex_lock(&s->lock);
	for (struct job **at = &s->jobs; *at && !found; at = &(*at)->next) {
		if (*at != job)
			continue;
		*at = job->next;
		if (!*at)
			s->tail = at;
		found = true;
		break;
	}
	pthread_mutex_unlock(&s->lock);
	return found;
}

bool strand_hold(struct strand *s)
{
	bool open;

	pthread_mutex_lock(&s->lock);
	open = !s->closed;
	s->n_holds += open;
	pthread_mutex_unlock(&s->lock);
	return open;
}

void strand_release(struct strand *s)
{
	pthread_mutex_lock(&s->lock);
	check(s->n_holds > 0);
	s->n_holds--;
	pthread_mutex_unlock(&s->lock);
}

bool strand_held(struct strand *s)
{
	bool held;

	pthread_mutex_lock(&s->lock);
	held = s->n_holds > 0;
	pthread_mutex_unlock(&s->lock);
	return held;
}

bool strand_close(struct strand *s, struct job *last)
{
	bool free;

	pthread_mutex_lock(&s->lock);
	free = s->n_holds == 0 && !s->closed;
	if (free) {
		s->closed = true;
		append(s, last);
	}
	pthread_mutex_unlock(&s->lock);
	return free;
}

bool strand_enter(struct strand *s)
{
	bool entered;

	check(loop_is_here(s->loop));
	pthread_mutex_lock(&s->lock);
	entered = !s->busy && !s->closed;
	s->busy = s->busy || entered;
	pthread_mutex_unlock(&s->lock);
	return entered;
}

bool strand_idle(struct strand *s)
{
	bool idle;

	pthread_mutex_lock(&s->lock);
	idle = !s->busy;
	pthread_mutex_unlock(&s->lock);
	return idle;
}

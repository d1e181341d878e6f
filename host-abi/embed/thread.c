/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of an instance, and how others have it do things. Contracts in instance.h.
 *
 * The thread is made by andiron_open and not by andiron_start: everything of the host then happens
 * on one thread from beginning to end, and no lock guards it. It waits for jobs by a condition
 * until the host runs, then by the host's own loop, and by the condition again once it has ended.
 * A caller that waits is never one of our threads (-EDEADLK), or nobody would do its job. */
#include "embed/instance.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

static struct embed_job *take_job(struct andiron *a)
{
	struct embed_job *job = a->jobs;

	if (job) {
		a->jobs = job->next;
		if (!a->jobs)
			a->tail = &a->jobs;
	}
	return job;
}

/* The lock is held, and let go while the job runs. */
static void run_job(struct andiron *a, struct embed_job *job)
{
	int r;

	pthread_mutex_unlock(&a->lock);
	r = job->run(a, job);
	pthread_mutex_lock(&a->lock);
	job->result = r;
	job->done = true;
	pthread_cond_broadcast(&a->changed);
}

/* A task of the running loop. */
static void wake_run(struct loop_task *task)
{
	struct andiron *a = container_of(task, struct andiron, wake);
	struct embed_job *job;

	pthread_mutex_lock(&a->lock);
	a->woken = false;
	while ((job = take_job(a)))
		run_job(a, job);
	pthread_mutex_unlock(&a->lock);
}

/* The lock is held. */
static void wake(struct andiron *a)
{
	if (a->stage == EMBED_RUNNING && !a->woken) {
		a->woken = true;
		loop_post(&a->host->loop, &a->wake);
	}
	pthread_cond_broadcast(&a->changed);
}

/* The lock is held, and let go while the host runs. */
static void run_host(struct andiron *a)
{
	struct error err = ERROR_NULL;
	int r;

	wake(a); /* for jobs that came before it could be told of them */
	pthread_mutex_unlock(&a->lock);
	r = host_run(a->host, &err);
	pthread_mutex_lock(&a->lock);
	if (r < 0 && !a->live)
		a->error = err;
	a->stage = EMBED_ENDED;
	pthread_cond_broadcast(&a->changed);
}

static void free_all(struct andiron *a)
{
	a->stuck = a->host && a->host->stuck;
	host_free(a->host);
	if (a->stuck)
		return;
	plan_free(a->plan);
	config_free(a->config);
	registry_free(a->registry);
	vec_each (&a->consumers, c)
		free(*c);
	vec_free(&a->consumers);
	vec_free(&a->plugins);
	a->host = NULL;
}

static void live(void *context, const char *failed)
{
	struct andiron *a = context;

	pthread_mutex_lock(&a->lock);
	a->live = true;
	if (failed)
		error_set(&a->error, -EIO, "could not start %s: %s", failed, a->host->failed_cause);
	pthread_cond_broadcast(&a->changed);
	pthread_mutex_unlock(&a->lock);
}

static void log_line(void *context, uint32_t level, const char *component, const char *line)
{
	const struct andiron *a = context;

	if (a->how.log)
		a->how.log(a->how.context, level, component, line);
}

static int make_host(struct andiron *a, struct error *err)
{
	const struct host_options options = {
		.log_level = a->how.log_level,
		.log_fd = -1,
		.log = log_line,
		.workers = a->how.workers,
		.queue_bytes = a->how.queue_bytes,
		.worker = *a->how.worker ? a->how.worker : NULL,
		.live = live,
		.context = a,
	};

	return host_new(&options, &a->host, err);
}

static void *serve(void *arg)
{
	struct andiron *a = arg;
	struct error err = ERROR_NULL;
	int r = make_host(a, &err);

	pthread_mutex_lock(&a->lock);
	a->ready = true;
	a->closing = r < 0;
	a->error = err;
	pthread_cond_broadcast(&a->changed);
	while (!a->closing || a->n_calls > 0) {
		struct embed_job *job = take_job(a);

		if (job)
			run_job(a, job);
		else
			pthread_cond_wait(&a->changed, &a->lock);
		if (a->stage == EMBED_RUNNING)
			run_host(a);
	}
	pthread_mutex_unlock(&a->lock);
	free_all(a);
	return NULL;
}

bool embed_callback_begin(struct andiron *a)
{
	bool may;

	pthread_mutex_lock(&a->lock);
	may = !a->closing;
	a->n_calls += may;
	pthread_mutex_unlock(&a->lock);
	return may;
}

void embed_callback_end(struct andiron *a)
{
	pthread_mutex_lock(&a->lock);
	a->n_calls--;
	pthread_cond_broadcast(&a->changed);
	pthread_mutex_unlock(&a->lock);
}

/* A thread has the signal mask of its maker. */
int embed_thread_start(struct andiron *a)
{
	sigset_t all, old;
	int r;

	a->wake.run = wake_run;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&a->thread, NULL, serve, a);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r == 0)
		pthread_setname_np(a->thread, "andiron");
	return -r;
}

/* The text that a caller gets; NULL where there is none. */
static void give(struct buf *text, char **ret_text)
{
	bool any = text->n > 0;

	if (ret_text && any)
		*ret_text = buf_take(text);
	else
		buf_free(text);
}

int embed_refuse(char **ret_text, int code, const char *why)
{
	struct buf text = BUF_NULL;

	buf_str_append(&text, str_of(why));
	give(&text, ret_text);
	return code;
}

int embed_say(struct embed_job *job, int code, const struct error *err)
{
	buf_str_append(&job->text, str_of(err->text));
	return code;
}

static bool is_worker(struct andiron *a)
{
	struct workers *w = &a->host->workers;
	bool is = false;

	pthread_mutex_lock(&w->lock);
	for (size_t i = 0; i < w->n_threads; i++)
		is |= pthread_equal(w->threads[i], pthread_self()) != 0;
	pthread_mutex_unlock(&w->lock);
	return is;
}

int embed_admit(struct andiron *a, bool from_workers, char **ret_text)
{
	if (ret_text)
		*ret_text = NULL;
	if (!a)
		return -EINVAL;
	if (a->pid != getpid())
		return embed_refuse(
			ret_text, -ECHILD,
			"the process has forked since this instance was opened; open another");
	if (pthread_equal(a->thread, pthread_self()) || (!from_workers && is_worker(a)))
		return embed_refuse(ret_text, -EDEADLK,
				    "called within a callback that it would have to wait for");
	return 0;
}

int embed_call(struct andiron *a, int (*run)(struct andiron *a, struct embed_job *job), void *arg,
	       char **ret_text)
{
	struct embed_job job = {.run = run, .arg = arg};

	pthread_mutex_lock(&a->lock);
	*a->tail = &job;
	a->tail = &job.next;
	wake(a);
	while (!job.done)
		pthread_cond_wait(&a->changed, &a->lock);
	pthread_mutex_unlock(&a->lock);
	give(&job.text, ret_text);
	return job.result;
}

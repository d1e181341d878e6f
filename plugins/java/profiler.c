/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions in time. Contract in profiler.h, parts in job.h.
 *
 * A job is either busy (its step is on a worker, which alone may touch the session) or waits, for a
 * timer, its socket and its process's end. Whatever happens first begins the next step. */
#include "java/profiler.h"

#include "abi/batch-build.h"
#include "abi/value.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/hash.h"
#include "java/job.h"
#include "java/labels.h"
#include "java/attach/library.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>

#define REPAIR_NS (10 * NS_PER_SEC)
#define BEGIN_NS  (100 * NS_PER_MSEC)

/* --- What is sent --- */

static void send_recording(struct profiler *p, struct job *job)
{
	struct session *s = &job->session;
	char query[80];
	struct encoded_profile profile = {
		.labels = job->labels,
		.n_labels = job->n_labels,
		.format = ANDIRON_ENCODED_JFR,
		.bytes = buf_str(&s->recording),
	};
	struct batch_head head = {s->from_ns, s->to_ns, p->context.instance, ++p->sequence,
				  ANDIRON_DEMANGLE_NONE};
	const struct andiron_batch *batch;

	/* The rate is what the server makes time of samples by. */
	snprintf(query, sizeof(query), "format=jfr&sampleRate=%lld&spyName=andiron",
		 (long long)s->sample_rate);
	profile.query = str_of(query);
	if (encoded_batch(&profile, 1, &head, &batch) < 0) {
		p->counts.lost_recordings++;
		abi_log(&p->context, ANDIRON_LOG_ERROR,
			"a recording of process %u is lost: no memory for a batch of it", s->pid);
	} else {
		p->counts.recordings++;
		p->counts.bytes += s->recording.n;
		abi_ledger(&p->context, ANDIRON_LEDGER_TAKEN, NULL, batch->samples);
		p->context.host->send_batch(p->context.instance, batch);
		batch_release(batch);
	}
	buf_free(&s->recording);
}

static bool refuses(const struct job *job)
{
	return job->why && !job->foreign;
}

static char *text_of(const char *text)
{
	return text ? strdup(text) : NULL;
}

/* Each reason once, until another comes or it is over. That a process is no JVM is no news, and
 * what the library lacks the component's health says. */
static void tell_log(struct profiler *p, struct job *job, const char *why)
{
	const struct session *s = &job->session;

	if (s->no_library || s->foreign || (!why && !s->running))
		return;
	if ((why && job->logged && strcmp(job->logged, why) == 0) || (!why && !job->logged))
		return;
	free(job->logged);
	job->logged = text_of(why);
	if (why)
		abi_log(&p->context, ANDIRON_LOG_WARN, "process %u: %s", s->pid, why);
	else
		abi_log(&p->context, ANDIRON_LOG_INFO, "process %u (%s) is profiled now", s->pid,
			s->jvm.name);
}

/* What a step has said, for whoever asks while the next is under way. */
static void note(struct profiler *p, struct job *job)
{
	const struct session *s = &job->session;
	const char *why = s->why.code ? s->why.text : NULL;

	p->counts.failing -= refuses(job);
	p->counts.attached += (uint64_t)s->attached - (uint64_t)job->attached;
	free(job->why);
	job->why = text_of(why);
	job->attached = s->attached;
	job->foreign = s->foreign;
	p->counts.failing += refuses(job);
	p->counts.failures += s->failed && !s->foreign;
	if (s->no_library)
		p->no_library = s->why;
	else if (s->attached)
		p->no_library = ERROR_NULL;
	tell_log(p, job, why);
}

void profiler_say(struct profiler *p)
{
	const struct profiler_counts *c = &p->counts;

	if (p->stopped)
		return;
	if (p->missed || p->repair)
		abi_health(&p->context, ANDIRON_HEALTH_UNHEALTHY,
			   "out of memory: not all targets are looked at; trying again soon");
	else if (p->no_library.code)
		abi_health(&p->context, ANDIRON_HEALTH_UNHEALTHY, "%s", p->no_library.text);
	else if (c->failing)
		abi_health(&p->context, ANDIRON_HEALTH_HEALTHY,
			   "%llu JVMs are profiled; %llu refuse: the status of the targets says "
			   "why",
			   (unsigned long long)c->attached, (unsigned long long)c->failing);
	else
		abi_health(&p->context, ANDIRON_HEALTH_HEALTHY, "%llu JVMs are profiled",
			   (unsigned long long)c->attached);
}

/* --- Steps --- */

static void launch(struct job *job);

static void on_timer(void *context)
{
	struct job *job = context;

	job->timer = 0;
	launch(job);
}

static void on_socket(void *context, int32_t fd, uint32_t events)
{
	launch(context);
}

static void on_exit_of_jvm(void *context, int32_t fd, uint32_t events)
{
	struct job *job = context;

	job->ended = true;
	launch(job);
}

static void wait_no_more(struct job *job)
{
	const struct abi_context *c = &job->profiler->context;

	if (job->timer)
		c->host->timer_cancel(c->instance, job->timer);
	if (job->watch)
		c->host->watch_remove(c->instance, job->watch);
	if (job->exit_watch)
		c->host->watch_remove(c->instance, job->exit_watch);
	job->timer = job->watch = job->exit_watch = 0;
}

/* What cannot be watched for want of memory is found when the timer fires. */
static void await_next(struct job *job)
{
	const struct abi_context *c = &job->profiler->context;
	struct session *s = &job->session;
	int64_t now = clock_mono(), at = s->due_ns > now ? s->due_ns : now;

	if (s->wait_fd >= 0)
		c->host->watch_add(c->instance, s->wait_fd, ANDIRON_WATCH_IN, on_socket, job,
				   &job->watch);
	if (s->attached && s->pidfd >= 0)
		c->host->watch_add(c->instance, s->pidfd, ANDIRON_WATCH_IN, on_exit_of_jvm, job,
				   &job->exit_watch);
	if (s->wait_fd >= 0 && !job->watch && at > now + NS_PER_SEC)
		at = now + NS_PER_SEC;
	if (c->host->timer_set(c->instance, at - now, 0, on_timer, job, &job->timer) < 0)
		profiler_lacks(job->profiler);
}

static void check_drained(struct profiler *p)
{
	if (!p->draining || p->drained)
		return;
	vec_each (&p->jobs, job)
		if ((*job)->busy || (*job)->attached)
			return;
	p->drained = true;
	p->context.host->drained(p->context.instance);
}

static void run(void *context)
{
	session_step(&((struct job *)context)->session);
}

/* What has changed while the step was under way is told to the next one at once. */
static bool has_news(const struct job *job)
{
	const struct session *s = &job->session;

	return s->attached && (job->ended || job->closing != s->closing);
}

static void go_on(struct profiler *p, struct job *job)
{
	if (p->stopped)
		return;
	if (!job->target && !job->session.attached)
		job_free(job);
	else if (has_news(job))
		launch(job);
	else if (job->session.attached || !p->draining)
		await_next(job);
}

static void done(void *context)
{
	struct job *job = context;
	struct profiler *p = job->profiler;

	job->busy = false;
	p->beginning -= job->beginning;
	if (job->session.recording.n && job->labels && !p->stopped)
		send_recording(p, job);
	note(p, job);
	go_on(p, job);
	check_drained(p);
	profiler_say(p);
}

/* Whether one more JVM may be attached to; else it waits. */
static bool has_room(struct job *job)
{
	struct profiler *p = job->profiler;
	struct session *s = &job->session;

	if (p->counts.attached + p->beginning < p->max_attached)
		return true;
	s->due_ns = clock_mono() + BEGIN_NS;
	s->failed = false;
	if (p->counts.attached >= p->max_attached) {
		error_set(&s->why, -EMFILE, "%u JVMs are profiled already, which is the most",
			  p->max_attached);
		s->due_ns = clock_mono() + REPAIR_NS;
		note(p, job);
	}
	return false;
}

static void launch(struct job *job)
{
	struct profiler *p = job->profiler;
	struct session *s = &job->session;

	if (job->busy || p->stopped)
		return;
	wait_no_more(job);
	if (!s->attached && !has_room(job)) {
		await_next(job);
		return;
	}
	if (s->settings != p->settings) {
		settings_release(s->settings);
		s->settings = settings_retain(p->settings);
	}
	s->closing = job->closing;
	s->ended = job->ended;
	job->ended = false;
	job->busy = true;
	job->beginning = !s->attached;
	p->beginning += job->beginning;
	if (p->context.host->work(p->context.instance, run, done, job) == 0)
		return;
	p->beginning -= job->beginning;
	job->busy = false;
	job->ended = s->ended;
	s->due_ns = clock_mono() + NS_PER_SEC;
	await_next(job);
}

/* --- Jobs --- */

struct probe {
	const struct profiler *profiler;
	uint32_t pid;
};

static bool same_pid(const void *context, uint32_t position)
{
	const struct probe *probe = context;

	return probe->profiler->jobs.p[position]->session.pid == probe->pid;
}

struct job *job_find(const struct profiler *p, uint32_t pid)
{
	struct probe probe = {p, pid};
	uint32_t at = index_find(&p->job_by_pid, hash_u64(pid), same_pid, &probe);

	return at == INDEX_NONE ? NULL : p->jobs.p[at];
}

struct job *job_new(struct profiler *p, struct target *t)
{
	struct job *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	if (!vec_push(&p->jobs, job)) {
		free(job);
		return NULL;
	}
	if (index_add(&p->job_by_pid, hash_u64(t->pid), (uint32_t)p->jobs.n - 1) < 0) {
		p->jobs.n--;
		free(job);
		return NULL;
	}
	job->profiler = p;
	job->target = t;
	job->at = (uint32_t)p->jobs.n - 1;
	session_init(&job->session, t->pid, settings_retain(p->settings));
	await_next(job);
	return job;
}

void job_close(struct job *job)
{
	job->target = NULL;
	job->closing = true;
	if (job->busy)
		return;
	if (job->session.attached)
		launch(job);
	else
		job_free(job);
}

/* The last job takes the place of one that goes. */
static void forget_place(struct profiler *p, const struct job *job)
{
	struct job *last = p->jobs.p[--p->jobs.n];

	index_remove(&p->job_by_pid, hash_u64(job->session.pid), job->at);
	if (last == job)
		return;
	index_move(&p->job_by_pid, hash_u64(last->session.pid), last->at, job->at);
	p->jobs.p[job->at] = last;
	last->at = job->at;
}

void job_free(struct job *job)
{
	struct profiler *p = job->profiler;

	check(!job->busy && p->jobs.p[job->at] == job);
	wait_no_more(job);
	p->counts.attached -= job->attached;
	p->counts.failing -= job->why && !job->foreign;
	forget_place(p, job);
	session_fini(&job->session);
	arena_free(&job->arena);
	free(job->why);
	free(job->logged);
	free(job);
}

/* --- Life --- */

static void on_repair(void *context)
{
	struct profiler *p = context;

	p->repair = 0;
	vec_each (&p->jobs, job)
		if (!(*job)->busy && !(*job)->timer)
			launch(*job);
	targets_repair(p);
}

void profiler_lacks(struct profiler *p)
{
	if (!p->repair && !p->stopped)
		p->context.host->timer_set(p->context.instance, REPAIR_NS, 0, on_repair, p,
					   &p->repair);
}

int profiler_new(const struct abi_context *context, struct settings *settings,
		 struct profiler **ret)
{
	struct profiler *p = calloc(1, sizeof(*p));
	struct rlimit limit = {.rlim_cur = 1024};

	if (p)
		p->table = target_table_new_keeping(labels_keeps);
	if (!p || !p->table) {
		free(p);
		settings_release(settings);
		return -ENOMEM;
	}
	p->context = *context;
	p->settings = settings;
	/* Five for each JVM; the others need descriptors too. */
	getrlimit(RLIMIT_NOFILE, &limit);
	p->max_attached = limit.rlim_cur / 8 < MAX_ATTACHED ? (uint32_t)(limit.rlim_cur / 8)
							    : MAX_ATTACHED;
	*ret = p;
	return 0;
}

void profiler_start(struct profiler *p)
{
	struct library library = {.bytes = BUF_NULL};

	p->no_library = ERROR_NULL;
	if (library_load(&library, p->settings->dist, &p->no_library) == -ENOMEM)
		p->no_library = ERROR_NULL; /* found out when a JVM is begun with */
	library_free(&library);
	profiler_say(p);
}

void profiler_update(struct profiler *p, struct settings *settings)
{
	settings_release(p->settings);
	p->settings = settings;
	/* A JVM that was refused may not be so by these. */
	vec_each (&p->jobs, job)
		if (!(*job)->busy && !(*job)->session.attached) {
			(*job)->session.failures = 0;
			(*job)->session.due_ns = clock_mono();
			wait_no_more(*job);
			await_next(*job);
		}
}

void profiler_drain(struct profiler *p)
{
	p->draining = true;
	vec_each (&p->jobs, job) {
		(*job)->closing = true;
		if ((*job)->attached)
			launch(*job);
		else if (!(*job)->busy)
			wait_no_more(*job);
	}
	check_drained(p);
}

void profiler_stop(struct profiler *p)
{
	if (p->repair)
		p->context.host->timer_cancel(p->context.instance, p->repair);
	p->repair = 0;
	vec_each (&p->jobs, job)
		wait_no_more(*job);
	p->stopped = true;
}

void profiler_free(struct profiler *p)
{
	if (!p)
		return;
	targets_free(p);
	while (p->jobs.n)
		job_free(p->jobs.p[p->jobs.n - 1]);
	vec_free(&p->jobs);
	index_free(&p->job_by_pid);
	settings_release(p->settings);
	free(p);
}

struct profiler_counts profiler_counts(const struct profiler *p)
{
	return p->counts;
}

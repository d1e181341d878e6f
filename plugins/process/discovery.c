/* SPDX-License-Identifier: Apache-2.0 */
/* One job runs at a time. What is to be read waits in `dirty`, by pid; a process may be gone or
 * read by the time its turn comes, which its own flag tells. A result counts only if its process is
 * still the one that it was read for. */
#include "process/discovery.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/search.h"
#include "process/job.h"
#include "process/table.h"

#include <andiron/process-events.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REFRESH_MIN_NS        (100 * NS_PER_MSEC)
#define REFRESH_MIN_EVENTS_NS (15 * NS_PER_SEC)

struct discovery {
	struct abi_context context;
	struct discovery_config config;
	struct andiron_extension events;
	uint64_t subscription;
	struct table table;
	struct proc_pids dirty;
	struct target_list *list;
	struct join *join;
	struct users users;
	int proc;
	bool running, busy, list_wanted, list_bad;
	size_t backlog; /* of `dirty`: what the current round reads */
	uint64_t gather_timer, refresh_timer;
	int64_t flushed_ns; /* or a round began, if that is later */
	uint64_t n_targets, n_reads;
	int cause; /* why there are no events, 0 if there are */
};

static void gather(struct discovery *d, int64_t delay_ns);

static void say_missing(struct discovery *d, int cause)
{
	abi_health(&d->context, ANDIRON_HEALTH_UNHEALTHY,
		   "%s: some processes are missing until the next refresh",
		   cause == -ENOMEM ? "out of memory" : strerror(-cause));
}

static void out_of_memory(struct discovery *d)
{
	say_missing(d, -ENOMEM);
}

/* Notes that a process is to be read. */
static void mark(struct discovery *d, struct process *p)
{
	if (p->dirty)
		return;
	if (vec_push(&d->dirty, p->pid))
		p->dirty = true;
	else
		out_of_memory(d);
}

static void on_touch(void *context, struct join_member *member)
{
	mark(context, process_of(member));
}

struct discovery *discovery_new(const struct andiron_host *host, uint64_t instance,
				const struct discovery_config *config)
{
	struct discovery *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->context = (struct abi_context){host, instance};
	d->config = *config;
	d->proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d->list = target_list_new(instance);
	d->join = d->list ? join_new(d->list, on_touch, d) : NULL;
	if (d->proc >= 0 && d->join)
		return d;
	discovery_free(d);
	return NULL;
}

void discovery_free(void *self)
{
	struct discovery *d = self;

	if (!d)
		return;
	check(!d->busy);
	vec_each (&d->table.processes, p)
		join_leave(d->join, &(*p)->member);
	table_fini(&d->table);
	join_free(d->join);
	target_list_free(d->list);
	users_free(&d->users);
	vec_free(&d->dirty);
	if (d->proc >= 0)
		close(d->proc);
	free(d);
}

static void hide(struct discovery *d, struct process *p)
{
	join_leave(d->join, &p->member);
	if (!p->row)
		return;
	target_list_remove(d->list, p->row);
	p->row = 0;
	d->n_targets--;
}

static void forget(struct discovery *d, struct process *p)
{
	hide(d, p);
	table_remove(&d->table, p);
}

/* A process that is there, by an event or a list (start 0: not known). */
static void found(struct discovery *d, uint32_t pid, uint64_t start_ns)
{
	struct process *p = table_find(&d->table, pid);

	if (p && p->start_ns && start_ns && !proc_same_start(p->start_ns, start_ns)) {
		forget(d, p); /* its end went unseen, and its pid was used again */
		p = NULL;
	}
	if (!p)
		p = table_add(&d->table, pid, start_ns);
	if (!p) {
		out_of_memory(d);
		return;
	}
	if (start_ns)
		p->start_ns = start_ns;
	mark(d, p);
}

static void ended(struct discovery *d, uint32_t pid, uint64_t start_ns)
{
	struct process *p = table_find(&d->table, pid);

	if (p && (!p->start_ns || proc_same_start(p->start_ns, start_ns)))
		forget(d, p);
}

static void on_events(void *arg, const struct andiron_process_event *events, uint64_t n)
{
	struct discovery *d = arg;
	bool at_once = false;

	for (uint64_t i = 0; i < n; i++) {
		const struct andiron_process_event *e = &events[i];

		switch (e->kind) {
		case ANDIRON_PROCESS_EXISTING:
			at_once = true;
			found(d, e->pid, e->start_ns);
			break;
		case ANDIRON_PROCESS_FORK:
		case ANDIRON_PROCESS_EXEC:
			found(d, e->pid, e->start_ns);
			break;
		case ANDIRON_PROCESS_EXIT:
			ended(d, e->pid, e->start_ns);
			break;
		case ANDIRON_PROCESS_LOST:
			d->list_wanted = true;
			break;
		default: /* a kind of a later revision */
			break;
		}
	}
	gather(d, at_once ? 0 : DISCOVERY_GATHER_NS);
}

/* With events a refresh is only there for what they do not tell. */
static int64_t refresh_ns(const struct discovery *d)
{
	int64_t least = d->cause ? REFRESH_MIN_NS : REFRESH_MIN_EVENTS_NS;

	return d->config.refresh_ns < least ? least : d->config.refresh_ns;
}

static void say_health(struct discovery *d)
{
	char text[32];

	if (d->list_bad)
		abi_health(&d->context, ANDIRON_HEALTH_UNHEALTHY, "cannot list /proc");
	else if (d->cause)
		abi_health(
			&d->context, ANDIRON_HEALTH_UNHEALTHY,
			"no process events (%s; process.events says more): /proc is listed every "
			"%s, and what lives shorter is missed",
			strerror(-d->cause), duration_format(refresh_ns(d), text, sizeof(text)));
	else
		abi_health(&d->context, ANDIRON_HEALTH_HEALTHY, "%llu processes are targets",
			   (unsigned long long)d->n_targets);
}

static void flush(struct discovery *d)
{
	const struct andiron_targets *update = NULL;

	if (target_list_flush(d->list, &update)) {
		out_of_memory(d);
		return;
	}
	d->flushed_ns = clock_mono();
	if (!update)
		return;
	d->context.host->send_targets(d->context.instance, "targets", update);
	update->release(update->owner);
	say_health(d);
}

/* Puts a process's row in place. */
static int show(struct discovery *d, struct process *p, const struct job_result *result)
{
	bool is_new = !p->row;
	int r = join_enter(d->join, &p->member, str_of(result->labels.container));

	if (is_new)
		p->row = join_row(d->join);
	if (!r)
		r = join_set(d->join, &p->member, p->row, p->pid, result->labels.labels,
			     result->labels.n);
	if (is_new && r)
		p->row = 0;
	d->n_targets += is_new && !r;
	return r;
}

static void apply(struct discovery *d, const struct job_result *result)
{
	struct process *p = table_find(&d->table, result->pid);

	if (!p)
		return; /* ended meanwhile */
	if (result->gone) {
		/* Or its pid is another's by now, which an event has said or will. */
		if (!p->dirty)
			forget(d, p);
		return;
	}
	if (!proc_same_start(p->start_ns, result->start_ns)) {
		hide(d, p); /* another than the one that was here */
		p->start_ns = result->start_ns;
	}
	if (!result->target)
		hide(d, p);
	else if (show(d, p, result))
		out_of_memory(d);
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return compare(x, y);
}

/* What a list does not have any more is gone, if it was there when the list was begun; all it has
 * is read again. */
static void apply_list(struct discovery *d, struct job *job)
{
	if (job->pids.n)
		qsort(job->pids.p, job->pids.n, sizeof(*job->pids.p), by_number);
	for (size_t i = d->table.processes.n; i-- > 0;) {
		struct process *p = d->table.processes.p[i];

		if (p->born <= job->last_born &&
		    (!job->pids.n ||
		     !bsearch(&p->pid, job->pids.p, job->pids.n, sizeof(*job->pids.p), by_number)))
			forget(d, p);
	}
	vec_each (&job->pids, pid)
		found(d, *pid, 0);
	d->backlog = d->dirty.n;
}

static void next_job(struct discovery *d);

static void job_done(void *arg)
{
	struct job *job = arg;
	struct discovery *d = job->owner;

	d->busy = false;
	if (!d->running) {
		job_free(job);
		return;
	}
	if (job->error == -ENOMEM)
		out_of_memory(d);
	if (job->list) {
		d->list_bad = job->error && job->error != -ENOMEM;
		if (!job->error)
			apply_list(d, job);
	}
	d->n_reads += job->results.n;
	vec_each (&job->results, result)
		apply(d, result);
	job_free(job);
	next_job(d);
}

static void job_work(void *arg)
{
	job_run(arg);
}

/* Moves what is to be read into the job. */
static int take_dirty(struct discovery *d, struct job *job)
{
	size_t taken = 0;

	if (!vec_reserve(&job->pids, JOB_PIDS_MAX))
		return -ENOMEM;
	for (; taken < d->dirty.n && job->pids.n < JOB_PIDS_MAX; taken++) {
		struct process *p = table_find(&d->table, d->dirty.p[taken]);

		if (!p || !p->dirty)
			continue;
		p->dirty = false;
		job->pids.p[job->pids.n++] = p->pid;
	}
	d->dirty.n -= taken;
	d->backlog -= taken < d->backlog ? taken : d->backlog;
	if (taken)
		memmove(d->dirty.p, d->dirty.p + taken, d->dirty.n * sizeof(*d->dirty.p));
	return 0;
}

static int begin_job(struct discovery *d)
{
	struct job *job = job_new();
	int r = 0;

	if (!job)
		return -ENOMEM;
	job->owner = d;
	job->proc = d->proc;
	job->users = &d->users;
	job->choice = d->config.choice;
	job->list = d->list_wanted;
	job->last_born = d->table.last_born;
	if (!job->list)
		r = take_dirty(d, job);
	if (!r)
		r = d->context.host->work(d->context.instance, job_work, job_done, job);
	if (r) {
		d->list_wanted = true; /* what the job took would be forgotten */
		job_free(job);
		return r;
	}
	d->list_wanted = false;
	d->busy = true;
	return 0;
}

/* Goes on with the round; publishes at its end, and in a long one now and then. What came up
 * meanwhile gathers for the next. */
static void next_job(struct discovery *d)
{
	bool more = d->list_wanted || d->backlog;
	int r;

	if (!more || clock_mono() - d->flushed_ns > 2 * DISCOVERY_GATHER_NS)
		flush(d);
	r = more ? begin_job(d) : 0;
	if (r) {
		say_missing(d, r);
		gather(d, NS_PER_SEC);
	} else if (!more && d->dirty.n) {
		gather(d, DISCOVERY_GATHER_NS);
	}
}

static void on_gathered(void *arg)
{
	struct discovery *d = arg;

	d->gather_timer = 0;
	if (d->busy)
		return; /* its end takes up what gathered */
	d->backlog = d->dirty.n;
	d->flushed_ns = clock_mono();
	next_job(d);
}

/* Lets things gather for a while; a job that runs goes on by itself. */
static void gather(struct discovery *d, int64_t delay_ns)
{
	int r;

	if (!d->running || d->busy || d->gather_timer)
		return;
	r = d->context.host->timer_set(d->context.instance, delay_ns, 0, on_gathered, d,
				       &d->gather_timer);
	if (r)
		say_missing(d, r);
}

static void on_refresh(void *arg);

static int set_refresh(struct discovery *d)
{
	const struct andiron_host *host = d->context.host;
	int r;

	if (d->refresh_timer)
		host->timer_cancel(d->context.instance, d->refresh_timer);
	d->refresh_timer = 0;
	r = host->timer_set(d->context.instance, refresh_ns(d), 0, on_refresh, d,
			    &d->refresh_timer);
	if (r)
		say_missing(d, r);
	return r;
}

static void on_refresh(void *arg)
{
	struct discovery *d = arg;

	d->refresh_timer = 0;
	d->list_wanted = true;
	set_refresh(d);
	gather(d, 0);
}

static int subscribe(struct discovery *d)
{
	const struct andiron_process_events *table;
	int r = d->context.host->extension(d->context.instance, ANDIRON_PROCESS_EVENTS_ID,
					   &d->events);

	if (r)
		return r;
	table = d->events.table;
	return table->subscribe(d->events.self, d->context.instance, on_events, d,
				&d->subscription);
}

int32_t discovery_start(void *self, struct andiron_error *err)
{
	struct error error = ERROR_NULL;
	struct discovery *d = self;
	int r = subscribe(d);

	if (r == -ENOMEM)
		return r;
	d->cause = r;
	r = set_refresh(d);
	if (r) {
		error_errno(&error, r, "the host sets no timer, so /proc would never be read");
		return abi_error(d->context.host, err, &error, r);
	}
	d->running = true;
	d->flushed_ns = clock_mono();
	r = d->cause;
	if (r) {
		abi_log(&d->context, ANDIRON_LOG_WARN,
			"no process events (%s): processes are found by listing /proc now and then",
			strerror(-r));
		say_health(d);
		d->list_wanted = true;
		gather(d, 0);
	}
	return 0;
}

void discovery_stop(void *self)
{
	struct discovery *d = self;
	const struct andiron_host *host = d->context.host;
	const struct andiron_process_events *table = d->events.table;

	d->running = false;
	if (d->subscription)
		table->unsubscribe(d->events.self, d->subscription);
	if (d->gather_timer)
		host->timer_cancel(d->context.instance, d->gather_timer);
	if (d->refresh_timer)
		host->timer_cancel(d->context.instance, d->refresh_timer);
	d->subscription = d->gather_timer = d->refresh_timer = 0;
}

void discovery_update(struct discovery *d, const struct discovery_config *config)
{
	d->config = *config;
	vec_each (&d->table.processes, p)
		mark(d, *p);
	if (!d->running)
		return;
	set_refresh(d);
	gather(d, 0);
}

void discovery_join(void *self, const char *port, const struct andiron_targets *update)
{
	struct discovery *d = self;
	int r = join_apply(d->join, update);

	if (r == -ENOMEM)
		out_of_memory(d);
	else if (r == -EINVAL)
		abi_log(&d->context, ANDIRON_LOG_ERROR,
			"an update of the targets to join breaks the ABI and is ignored");
	gather(d, DISCOVERY_GATHER_NS);
}

void discovery_totals(const struct discovery *d, struct discovery_totals *ret)
{
	*ret = (struct discovery_totals){d->table.processes.n, d->n_targets, d->n_reads};
}

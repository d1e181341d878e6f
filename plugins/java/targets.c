/* SPDX-License-Identifier: Apache-2.0 */
/* Targets and their processes. A process has one job, whichever target it came with first; a twin
 * of a target that has gone takes its place. */
#include "abi/value.h"
#include "java/job.h"
#include "java/labels.h"

#include <errno.h>

#define MAX_LABELS 128u

/* As the target is now; what a step of the job does meanwhile does not look at them. */
static void relabel(struct profiler *p, struct job *job, const struct target_row *row)
{
	struct arena arena = ARENA_NULL;
	uint32_t n = 0;
	const struct target_label *labels = labels_make(&arena, row, &n);

	if (!labels) {
		arena_free(&arena);
		profiler_lacks(p);
		return;
	}
	arena_free(&job->arena);
	job->arena = arena;
	job->labels = labels;
	job->n_labels = n;
}

static void claim(struct profiler *p, struct target *t)
{
	struct job *job = job_find(p, t->pid);

	t->excess = NULL;
	if (job && job->target) {
		t->excess = "another target has the same process";
		return;
	}
	if (job) {
		/* Its target has gone just now; what it has begun to stop begins again. */
		job->target = t;
		job->closing = false;
		t->job = job;
		relabel(p, job, t->row);
		return;
	}
	if (p->jobs.n >= MAX_JOBS) {
		t->excess = "there are too many targets: 4096 processes are looked at";
		return;
	}
	t->job = job_new(p, t);
	if (!t->job)
		profiler_lacks(p);
	else
		relabel(p, t->job, t->row);
}

static void release(struct target *t)
{
	if (t->job)
		job_close(t->job);
	t->job = NULL;
}

static void set_row(struct profiler *p, struct target *t, const struct target_row *row)
{
	struct error err = ERROR_NULL;
	uint32_t pid = 0;

	t->row = row;
	free(t->fault);
	t->fault = NULL;
	if (row->n_labels > MAX_LABELS)
		error_set(&err, -EINVAL, "the target has more than %u labels", MAX_LABELS);
	else
		labels_pid(row, &pid, &err);
	if (err.code)
		t->fault = strdup(err.text);
	if (pid != t->pid)
		release(t);
	t->pid = pid;
	if (t->job)
		relabel(p, t->job, row);
}

static void on_change(void *context, int change, struct target_row *row)
{
	struct profiler *p = context;
	struct target *t = row->user;

	if (change == TARGET_REMOVED) {
		if (!t)
			return;
		p->targets.p[t->at] = p->targets.p[--p->targets.n];
		p->targets.p[t->at]->at = t->at;
		release(t);
		free(t->fault);
		free(t);
		return;
	}
	if (!t) {
		t = calloc(1, sizeof(*t));
		if (!t || !vec_push(&p->targets, t)) {
			profiler_lacks(p);
			free(t);
			return;
		}
		t->at = (uint32_t)p->targets.n - 1;
		row->user = t;
	}
	set_row(p, t, row);
}

/* Gives targets that have no job yet theirs. */
static void settle(struct profiler *p)
{
	vec_each (&p->targets, t)
		if (!(*t)->job && (*t)->pid && !p->draining)
			claim(p, *t);
	p->counts.targets = p->targets.n;
	profiler_say(p);
}

void profiler_targets(struct profiler *p, const struct andiron_targets *update)
{
	int r = target_table_apply(p->table, update, on_change, p);

	if (r == -EINVAL)
		abi_log(&p->context, ANDIRON_LOG_ERROR,
			"a target update breaks the ABI and is ignored");
	if (r == -ENOMEM || r == -EAGAIN) {
		p->missed = true;
		profiler_lacks(p);
	}
	settle(p);
}

void targets_repair(struct profiler *p)
{
	bool missed = p->missed;

	p->missed = false;
	target_table_each(p->table, on_change, p);
	settle(p);
	if (missed && ANDIRON_HAS(p->context.host, andiron_host, request_targets))
		p->context.host->request_targets(p->context.instance, "targets");
}

void targets_free(struct profiler *p)
{
	vec_each (&p->targets, t) {
		if ((*t)->job)
			(*t)->job->target = NULL;
		free((*t)->fault);
		free(*t);
	}
	vec_free(&p->targets);
	target_table_free(p->table);
}

/* --- For people --- */

struct listing {
	const struct andiron_target_processes_sink *sink;
	bool failed;
};

static const char *why_of(const struct target *t)
{
	if (!t)
		return "not looked at yet: out of memory";
	if (t->fault)
		return t->fault;
	if (!t->job)
		return t->excess ? t->excess : "not looked at yet";
	if (t->job->why)
		return t->job->why;
	return t->job->attached ? "" : "not looked at yet";
}

static void tell(void *context, int change, struct target_row *row)
{
	struct listing *listing = context;
	const struct target *t = row->user;
	struct andiron_kv *labels = calloc(row->n_labels + 1, sizeof(*labels));
	struct andiron_target_process process = {.runtime = abi_str_of(STR("HotSpot"))};
	struct andiron_target_processes_row target = {
		.labels = labels,
		.n_labels = row->n_labels,
		.processes = &process,
		.why = abi_str_of(str_of(why_of(t))),
	};

	listing->failed |= !labels;
	for (uint32_t i = 0; labels && i < row->n_labels; i++)
		labels[i] = (struct andiron_kv){abi_str_of(row->labels[i].name),
						abi_str_of(row->labels[i].value)};
	/* The name was set when the JVM was attached to, and by no step since. */
	if (t && t->job && t->job->attached && !t->job->why) {
		process.pid = t->pid;
		process.name = abi_str_of(str_of(t->job->session.jvm.name));
		target.n_processes = 1;
	}
	if (labels)
		listing->sink->add(listing->sink->self, &target);
	free(labels);
}

int profiler_each(struct profiler *p, const struct andiron_target_processes_sink *sink)
{
	struct listing listing = {.sink = sink};

	target_table_each(p->table, tell, &listing);
	return listing.failed ? -ENOMEM : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Targets and their jobs. A job is found by what it asks and how the answer is labelled; so a
 * target that is given twice is scraped once, and one whose metadata changes goes on as it was. */
#include "base/check.h"
#include "scrape/endpoint.h"
#include "scrape/job.h"

#include <errno.h>
#include <stdlib.h>

#define MAX_WHY 1024

/* --- Jobs --- */

struct probe {
	const struct scraper *s;
	const unsigned char *identity;
};

static bool same_job(const void *context, uint32_t position)
{
	const struct probe *probe = context;

	return memcmp(probe->s->jobs.p[position]->identity, probe->identity, SHA256_BYTES) == 0;
}

static struct job *find_job(const struct scraper *s, const unsigned char *identity)
{
	struct probe probe = {s, identity};
	uint32_t at = index_find(&s->by_identity, endpoint_hash(identity), same_job, &probe);

	return at == INDEX_NONE ? NULL : s->jobs.p[at];
}

static struct job *job_new(struct scraper *s, const unsigned char *identity)
{
	struct job *job = calloc(1, sizeof(*job));

	if (!job)
		return NULL;
	job->due.place = DUE_NOWHERE;
	memcpy(job->identity, identity, SHA256_BYTES);
	job->at = (uint32_t)s->jobs.n;
	if (!vec_reserve(&s->jobs, 1) ||
	    index_add(&s->by_identity, endpoint_hash(identity), job->at) < 0) {
		free(job);
		return NULL;
	}
	s->jobs.p[s->jobs.n++] = job;
	return job;
}

void job_free(struct scraper *s, struct job *job)
{
	struct job *last = s->jobs.p[s->jobs.n - 1];

	check(s->jobs.p[job->at] == job);
	if (job->flight)
		scraper_abandon(s, job);
	scraper_unschedule(s, job);
	index_remove(&s->by_identity, endpoint_hash(job->identity), job->at);
	if (last != job) {
		index_move(&s->by_identity, endpoint_hash(last->identity), last->at, job->at);
		s->jobs.p[job->at] = last;
		last->at = job->at;
	}
	s->jobs.n--;
	s->counts.down -= job->state == STATE_DOWN;
	s->counts.totals_bytes -= job->totals_bytes;
	totals_free(job->totals);
	free(job->why);
	free(job);
}

/* --- Targets --- */

static void set_fault(struct scraper *s, struct target *t, const char *fault)
{
	s->counts.faults -= t->fault != NULL;
	free(t->fault);
	t->fault = fault ? strdup(fault) : NULL;
	s->counts.faults += t->fault != NULL;
}

/* The job of one kind, new, or one that nobody has any more, or one that the target had. */
static struct job *take_job(struct scraper *s, struct target *t, uint32_t kind)
{
	struct error err = ERROR_NULL;
	struct endpoint e;
	struct job *job = NULL;
	unsigned char identity[SHA256_BYTES];
	int r = endpoint_init(&e, s->settings, t->row, &s->settings->kinds[kind], &err);

	if (r == 0) {
		endpoint_identity(&e, identity);
		job = find_job(s, identity);
		if (job && job->target) {
			t->has_twins = true;
			job = NULL;
		} else if (!job) {
			job = job_new(s, identity);
			if (!job)
				scraper_lacks(s);
		}
	} else if (r == -ENOMEM) {
		scraper_lacks(s);
	} else {
		set_fault(s, t, err.text);
	}
	endpoint_fini(&e);
	if (job) {
		job->target = t;
		job->kind = kind;
	}
	return job;
}

static void build(struct scraper *s, struct target *t)
{
	uint32_t n = s->settings->n_kinds;

	check(!t->jobs);
	t->has_twins = false;
	set_fault(s, t, NULL);
	t->jobs = calloc(n + 1, sizeof(struct job *));
	if (!t->jobs)
		scraper_lacks(s);
	t->n_jobs = t->jobs ? n : 0;
	for (uint32_t i = 0; i < t->n_jobs; i++) {
		struct job *job = t->jobs[i] = take_job(s, t, i);

		if (job && job->due.place == DUE_NOWHERE && !job->flight)
			scraper_schedule(s, job);
	}
}

/* Leaves the jobs without a target, for whoever asks the same. */
static void unbuild(struct target *t)
{
	for (uint32_t i = 0; i < t->n_jobs; i++)
		if (t->jobs[i])
			t->jobs[i]->target = NULL;
	free(t->jobs);
	t->jobs = NULL;
	t->n_jobs = 0;
}

static void drop_ownerless(struct scraper *s)
{
	for (size_t i = s->jobs.n; i-- > 0;)
		if (!s->jobs.p[i]->target)
			job_free(s, s->jobs.p[i]);
}

static void target_free(struct scraper *s, struct target *t)
{
	unbuild(t);
	set_fault(s, t, NULL);
	free(t);
}

static void on_change(void *context, int change, struct target_row *row)
{
	struct scraper *s = context;
	struct target *t = row->user;

	if (change == TARGET_REMOVED) {
		if (!t)
			return;
		s->targets.p[t->at] = s->targets.p[--s->targets.n];
		s->targets.p[t->at]->at = t->at;
		target_free(s, t);
		return;
	}
	if (!t) {
		t = calloc(1, sizeof(*t));
		if (!t || !vec_push(&s->targets, t)) {
			scraper_lacks(s);
			free(t);
			return;
		}
		t->at = (uint32_t)s->targets.n - 1;
		row->user = t;
	}
	t->row = row;
	unbuild(t);
	build(s, t);
}

/* A twin of what has gone takes its place. */
static void settle(struct scraper *s)
{
	vec_each (&s->targets, t)
		if ((*t)->has_twins) {
			unbuild(*t);
			build(s, *t);
		}
	drop_ownerless(s);
	s->counts.targets = s->targets.n;
	s->counts.jobs = s->jobs.n;
	scraper_arm(s);
	scraper_say(s);
}

void scraper_targets(struct scraper *s, const struct andiron_targets *update)
{
	int r;

	r = target_table_apply(s->table, update, on_change, s);
	if (r == -EINVAL)
		abi_log(&s->context, ANDIRON_LOG_ERROR,
			"a target update breaks the ABI and is ignored");
	if (r == -ENOMEM || r == -EAGAIN) {
		s->missed = true;
		scraper_lacks(s);
	}
	settle(s);
}

void targets_repair(struct scraper *s)
{
	bool missed = s->missed;

	s->repair_ns = 0;
	s->missed = false;
	target_table_each(s->table, on_change, s);
	settle(s);
	if (missed && ANDIRON_HAS(s->context.host, andiron_host, request_targets))
		s->context.host->request_targets(s->context.instance, "targets");
}

void targets_rebuild(struct scraper *s)
{
	vec_each (&s->targets, t)
		unbuild(*t);
	vec_each (&s->targets, t)
		build(s, *t);
	settle(s);
}

void targets_free(struct scraper *s)
{
	vec_each (&s->targets, t)
		target_free(s, *t);
	drop_ownerless(s);
	vec_free(&s->targets);
	vec_free(&s->jobs);
	vec_free(&s->heap.items);
	vec_free(&s->late.items);
	index_free(&s->by_identity);
	target_table_free(s->table);
}

/* --- For people --- */

/* What is wrong with a target, or with the one that is scraped in its place; each cause once. */
static bool describe(const struct scraper *s, const struct target *t, struct buf *out)
{
	const char *last = NULL;
	bool waits = false;

	if (t->fault)
		buf_printf(out, "%s", t->fault);
	for (uint32_t i = 0; i < t->n_jobs; i++) {
		const struct job *job = t->jobs[i];
		struct str name = s->settings->kinds[i].name;

		if (!job || !job->why) {
			waits |= job && job->state == STATE_UNKNOWN;
			continue;
		}
		if (last && strcmp(last, job->why) == 0)
			buf_printf(out, ", %.*s too", STR_FMT(name));
		else
			buf_printf(out, "%s%.*s: %s", out->n ? "; " : "", STR_FMT(name), job->why);
		last = job->why;
	}
	if (!out->n && waits)
		buf_printf(out, "not scraped yet");
	return out->n > 0;
}

struct telling {
	struct scraper *s;
	scraper_target_fn fn;
	void *context;
	bool failed;
};

static void tell(void *context, int change, struct target_row *row)
{
	struct telling *telling = context;
	struct buf out = {.limit = MAX_WHY * SETTINGS_MAX_KINDS};
	bool any = row->user && describe(telling->s, row->user, &out);

	buf_putc(&out, '\0');
	if (out.failed)
		telling->failed = true;
	else
		telling->fn(telling->context, row, any ? out.p : NULL);
	buf_free(&out);
}

int scraper_each(struct scraper *s, scraper_target_fn fn, void *context)
{
	struct telling telling = {s, fn, context, false};

	target_table_each(s->table, tell, &telling);
	return telling.failed ? -ENOMEM : 0;
}

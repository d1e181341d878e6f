/* SPDX-License-Identifier: Apache-2.0 */
/* Files that match. Contract in file-match.h. Files are looked for at each `sync_period` and when
 * targets have changed: no watch covers what a ** may reach. */
#include "discovery/file-match.h"

#include "abi/value.h"
#include "base/clock.h"
#include "discovery/path-search.h"
#include "discovery/target-rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define PATH    "__path__"
#define EXCLUDE "__path_exclude__"

struct file_match {
	struct abi_context context;
	struct target_table *input;
	struct sources sources; /* one */
	struct search *search;  /* the one that runs, or NULL */
	int64_t period_ns, ignore_older_ns;
	uint64_t timer;
	bool changed, stopped;
	struct file_match_counts counts;
};

/* Labels of one path target, in the search's arena. */
struct wanted {
	struct target_label *labels;
	size_t n;
};

/* All that one search needs, so that the input may change meanwhile. */
struct search {
	struct file_match *m;
	struct arena arena;
	VEC(struct wanted) wanted;
	struct path_search files;
	struct target_rows rows;
	char fault[192]; /* the first path target that gives no file, and why */
	size_t too_many; /* files whose labels had no room in the rows */
	int result;
};

int32_t file_match_create(const struct andiron_host *host, uint64_t instance,
			  const struct andiron_value *args, void **ret_self,
			  struct andiron_error *ret_err)
{
	struct file_match *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->context = (struct abi_context){host, instance};
	m->period_ns = value_int(args, "sync_period", 10 * NS_PER_SEC);
	m->ignore_older_ns = value_int(args, "ignore_older_than", 0);
	m->input = target_table_new();
	if (!m->input || sources_init(&m->sources, &m->context) < 0) {
		file_match_free(m);
		return -ENOMEM;
	}
	*ret_self = m;
	return 0;
}

void file_match_free(void *self)
{
	struct file_match *m = self;

	if (!m)
		return;
	sources_fini(&m->sources);
	target_table_free(m->input);
	free(m);
}

/* --- A search, on a worker --- */

static struct str wanted_value(const struct wanted *w, const char *name)
{
	for (size_t i = 0; i < w->n; i++)
		if (str_is(w->labels[i].name, name))
			return w->labels[i].value;
	return STR_NULL;
}

static int add_row(struct search *s, const struct wanted *w, const char *path)
{
	struct str text = s->too_many ? STR_NULL : arena_str(&s->rows.arena, str_of(path));
	int r = s->too_many ? -E2BIG : text.p ? 0 : -ENOMEM;

	for (size_t i = 0; i < w->n && r == 0; i++)
		r = target_rows_label(&s->rows, w->labels[i].name, w->labels[i].value);
	if (r == 0)
		r = target_rows_label(&s->rows, STR(PATH), text);
	if (r == 0)
		r = target_rows_end(&s->rows);
	if (r != -E2BIG)
		return r;
	s->too_many++; /* a row may be begun: none is added to it any more */
	return 0;
}

/* 1: the pattern is read; 0: it cannot be, which is said; or -ENOMEM. */
static int read_pattern(struct search *s, const char *label, struct str text,
			struct path_pattern *ret)
{
	int r = path_pattern_read(text, ret);

	if (r == 0)
		return 1;
	if (r != -ENOMEM && !s->fault[0])
		snprintf(s->fault, sizeof(s->fault), "%s \"%.*s\" %s", label,
			 (int)(text.n < 100 ? text.n : 100), text.p,
			 r == -E2BIG ? "is longer, or stands for more, than can be looked for"
				     : "has a brace that does not close");
	return r == -ENOMEM ? r : 0;
}

static int find(struct search *s, const struct wanted *w, const struct path_pattern *pattern)
{
	int r = path_search_run(&s->files, pattern);

	for (size_t i = 0; i < s->files.found.n && r == 0; i++)
		r = add_row(s, w, s->files.found.p[i]);
	return r;
}

static int search_one(struct search *s, const struct wanted *w)
{
	struct str path = wanted_value(w, PATH), exclude = wanted_value(w, EXCLUDE);
	struct path_pattern pattern = {0}, excluded = {0};
	int r = 1;

	if (!path.n) {
		if (!s->fault[0])
			snprintf(s->fault, sizeof(s->fault), "a target has no " PATH);
		return 0;
	}
	if (exclude.n)
		r = read_pattern(s, EXCLUDE, exclude, &excluded);
	if (r == 1)
		r = read_pattern(s, PATH, path, &pattern);
	s->files.exclude = exclude.n ? &excluded : NULL;
	if (r == 1)
		r = find(s, w, &pattern);
	path_pattern_free(&pattern);
	path_pattern_free(&excluded);
	return r;
}

static void on_search(void *context)
{
	struct search *s = context;
	for (size_t i = 0; i < s->wanted.n && s->result == 0 && !s->files.stop; i++)
		s->result = search_one(s, &s->wanted.p[i]);
}

static void search_free(struct search *s)
{
	target_rows_free(&s->rows);
	path_search_free(&s->files);
	vec_free(&s->wanted);
	arena_free(&s->arena);
	free(s);
}

/* --- On the loop --- */

static void say_state(struct file_match *m, const struct search *s)
{
	if (s->fault[0])
		abi_health(&m->context, ANDIRON_HEALTH_UNHEALTHY,
			   "%s: it gives no file; %zu files match the others", s->fault,
			   s->rows.rows.n);
	else if (s->files.cut)
		abi_health(&m->context, ANDIRON_HEALTH_UNHEALTHY,
			   "%zu files match, and more may: no more than %d entries of folders are "
			   "looked at; name the folders in " PATH,
			   s->rows.rows.n, PATH_SEARCH_ENTRIES);
	else if (s->files.left_out)
		abi_health(&m->context, ANDIRON_HEALTH_UNHEALTHY,
			   "%zu files match, and %zu more are left out: no more than %d can be "
			   "targets; use " EXCLUDE " or ignore_older_than",
			   s->rows.rows.n, s->files.left_out, PATH_SEARCH_FILES);
	else if (s->too_many)
		abi_health(&m->context, ANDIRON_HEALTH_UNHEALTHY,
			   "%zu files match, and %zu more are left out: the labels of all take "
			   "more than %zu MiB; give path_targets fewer",
			   s->rows.rows.n, s->too_many, ROWS_MAX_BYTES >> 20);
	else if (s->files.unreadable)
		abi_health(&m->context, ANDIRON_HEALTH_HEALTHY,
			   "%zu files match; %zu folders may not be read", s->rows.rows.n,
			   s->files.unreadable);
	else
		abi_health(&m->context, ANDIRON_HEALTH_HEALTHY, "%zu files match",
			   s->rows.rows.n);
}

static int take(struct file_match *m, const struct search *s)
{
	struct source *source = sources_get(&m->sources, "files");
	int r = source ? sources_set(&m->sources, source, &s->rows) : -ENOMEM;

	return r < 0 ? r : sources_publish(&m->sources);
}

static void begin(struct file_match *m);

static void on_found(void *context)
{
	struct search *s = context;
	struct file_match *m = s->m;

	m->search = NULL;
	if (!m->stopped) {
		m->counts.searches++;
		m->counts.entries += s->files.entries;
		if (s->result == 0 && !s->files.failed)
			s->result = take(m, s);
		if (s->result < 0)
			abi_health(&m->context, ANDIRON_HEALTH_UNHEALTHY,
				   "out of memory: the targets are not up to date");
		else if (s->files.failed)
			abi_health(&m->context, ANDIRON_HEALTH_UNHEALTHY,
				   "a folder cannot be read: %s; the targets stay as they are",
				   strerror(s->files.failed));
		else
			say_state(m, s);
	}
	search_free(s);
	if (m->changed)
		begin(m);
}

static void copy_row(void *context, int change, struct target_row *row)
{
	struct search *s = context;
	struct wanted w = {.n = row->n_labels};

	w.labels = arena_array(&s->arena, struct target_label, row->n_labels + 1);
	for (uint32_t i = 0; w.labels && i < row->n_labels; i++) {
		w.labels[i].name = arena_str(&s->arena, row->labels[i].name);
		w.labels[i].value = arena_str(&s->arena, row->labels[i].value);
		if (!w.labels[i].name.p || !w.labels[i].value.p)
			s->result = -ENOMEM;
	}
	if (!w.labels || !vec_push(&s->wanted, w))
		s->result = -ENOMEM;
}

/* Searches, or does so again when the search that runs has ended. */
static void begin(struct file_match *m)
{
	struct search *s;

	if (m->stopped)
		return;
	m->changed = m->search != NULL;
	if (m->search)
		return;
	s = calloc(1, sizeof(*s));
	if (!s)
		return; /* the next period tries again */
	s->m = m;
	s->files.not_before_ns =
		m->ignore_older_ns ? clock_real() - m->ignore_older_ns : INT64_MIN;
	target_table_each(m->input, copy_row, s);
	if (m->context.host->work(m->context.instance, on_search, on_found, s) == 0)
		m->search = s;
	else
		search_free(s);
}

/* A search that takes longer than the period is followed by a pause, not by the next. */
static void on_period(void *context)
{
	struct file_match *m = context;

	if (!m->search)
		begin(m);
}

int32_t file_match_start(void *self, struct andiron_error *err)
{
	struct file_match *m = self;
	int r = m->context.host->timer_set(m->context.instance, m->period_ns, m->period_ns,
					   on_period, m, &m->timer);

	if (r == 0)
		abi_health(&m->context, ANDIRON_HEALTH_HEALTHY, "no targets yet");
	return r;
}

void file_match_stop(void *self)
{
	struct file_match *m = self;

	m->stopped = true;
	if (m->search)
		m->search->files.stop = true;
	if (m->timer)
		m->context.host->timer_cancel(m->context.instance, m->timer);
	m->timer = 0;
}

static void nothing(void *context, int change, struct target_row *row)
{
}

void file_match_targets(void *self, const char *port, const struct andiron_targets *update)
{
	struct file_match *m = self;
	int r = target_table_apply(m->input, update, nothing, NULL);

	if (r == -EINVAL)
		abi_log(&m->context, ANDIRON_LOG_ERROR,
			"a target update breaks the ABI and is ignored");
	else if (r == -ENOMEM)
		abi_health(&m->context, ANDIRON_HEALTH_UNHEALTHY,
			   "out of memory: some targets are not known");
	else
		begin(m);
}

struct file_match_counts file_match_counts(const void *self)
{
	const struct file_match *m = self;
	struct file_match_counts c = m->counts;

	c.targets = sources_count(&m->sources);
	return c;
}

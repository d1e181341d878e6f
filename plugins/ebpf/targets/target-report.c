/* SPDX-License-Identifier: Apache-2.0 */
/* See target-report.h. Processes are put in the order of their matches, so that those of one lie
 * together; nothing is kept for it between two questions. */
#include "ebpf/targets/target-report.h"

#include "abi/target-selector.h"
#include "abi/value.h"
#include "base/arena.h"
#include "base/search.h"

#include <errno.h>
#include <stdlib.h>

struct reporting {
	struct matcher *matcher;
	const struct process **sorted;
	size_t n;
	const char *node;
	struct runtimes *runtimes;
	target_report_fn fn;
	void *context;
};

static int by_match(const void *a, const void *b)
{
	const struct process *x = *(const struct process *const *)a;
	const struct process *y = *(const struct process *const *)b;

	return compare((uintptr_t)x->match, (uintptr_t)y->match)
		       ?: compare(x->key.tgid, y->key.tgid);
}

static const char *why_nobody(const struct reporting *t, const struct target_row *row,
			      struct target_selector subject)
{
	const char *why = target_selector_absent(row->labels, row->n_labels, t->node);

	if (why)
		return why;
	return subject.pid ? "no process with this pid has used a CPU recently"
			   : "no process of this container has used a CPU of this node recently";
}

/* Adds the processes of `match`, which may be NULL. False: there are none. */
static bool take_processes(const struct reporting *t, const struct match *match,
			   struct target_report *ret)
{
	size_t from = search_partition(t->n, i, (uintptr_t)t->sorted[i]->match < (uintptr_t)match),
	       to = from;

	while (match && to < t->n && t->sorted[to]->match == match)
		to++;
	ret->processes = t->sorted + from;
	ret->n_processes = to - from;
	return to > from;
}

static void report_row(void *context, int change, struct target_row *row)
{
	const struct reporting *t = context;
	struct target_selector subject = target_selector_of(row->labels, row->n_labels);
	struct target_report report = {
		.labels = row->labels, .n_labels = row->n_labels, .runtimes = t->runtimes};

	if (!take_processes(t, matcher_of(t->matcher, subject), &report))
		report.why = why_nobody(t, row, subject);
	t->fn(t->context, &report);
}

/* The target of what belongs to no other. */
static void report_default(const struct reporting *t)
{
	const struct match *match = matcher_default(t->matcher);
	struct target_report report = {.runtimes = t->runtimes};

	if (!match)
		return;
	report.labels = match->labels;
	report.n_labels = match->n_labels;
	if (!take_processes(t, match, &report))
		report.why = "no process outside of targets has used a CPU recently";
	t->fn(t->context, &report);
}

int target_report_each(struct matcher *m, const struct processes *processes,
		       struct runtimes *runtimes, target_report_fn fn, void *context)
{
	struct reporting t = {.matcher = m,
			      .node = getenv("NODE_NAME"),
			      .runtimes = runtimes,
			      .fn = fn,
			      .context = context};

	t.sorted = calloc(processes->all.n + 1, sizeof(*t.sorted));
	if (!t.sorted)
		return -ENOMEM;
	vec_each (&processes->all, p)
		if ((*p)->match && (*p)->match_generation == matcher_generation(m))
			t.sorted[t.n++] = *p;
	qsort(t.sorted, t.n, sizeof(*t.sorted), by_match);
	matcher_each(m, report_row, &t);
	report_default(&t);
	free(t.sorted);
	return 0;
}

void target_report_count(struct matcher *m, const struct processes *processes,
			 uint64_t *ret_targets, uint64_t *ret_matched)
{
	size_t n;
	struct match *const *all = matcher_all(m, &n);

	for (size_t i = 0; i < n; i++)
		all[i]->n_processes = 0;
	vec_each (&processes->all, p) {
		const struct match *match = (*p)->match;

		if (match && (*p)->match_generation == matcher_generation(m) && match->at < n &&
		    all[match->at] == match)
			all[match->at]->n_processes++;
	}
	*ret_targets = n;
	*ret_matched = 0;
	for (size_t i = 0; i < n; i++)
		*ret_matched += all[i]->n_processes > 0;
}

static struct andiron_kv *labels_of(struct arena *arena, const struct target_report *report)
{
	struct andiron_kv *labels = arena_array(arena, struct andiron_kv, report->n_labels + 1);

	for (size_t i = 0; labels && i < report->n_labels; i++)
		labels[i] = (struct andiron_kv){abi_str_of(report->labels[i].name),
						abi_str_of(report->labels[i].value)};
	return labels;
}

/* What its runtimes are, if any; no text where memory is short. */
static struct andiron_str runtime_of(struct arena *arena, const struct target_report *report,
				     const struct process *p)
{
	char text[512];
	size_t n = report->runtimes ? runtimes_describe(report->runtimes, p, text, sizeof(text))
				    : 0;

	return abi_str_of(arena_str(arena, (struct str){text, n}));
}

static struct andiron_target_process *processes_of(struct arena *arena,
						   const struct target_report *report)
{
	struct andiron_target_process *list =
		arena_array(arena, struct andiron_target_process, report->n_processes + 1);

	for (size_t i = 0; list && i < report->n_processes; i++)
		list[i] = (struct andiron_target_process){
			.pid = report->processes[i]->key.tgid,
			.name = abi_str_of(str_of(report->processes[i]->comm)),
			.runtime = runtime_of(arena, report, report->processes[i])};
	return list;
}

void target_report_add(void *context, const struct target_report *report)
{
	struct target_report_sink *m = context;
	struct arena arena = ARENA_NULL;
	struct andiron_target_processes_row target = {
		.labels = labels_of(&arena, report),
		.n_labels = report->n_labels,
		.processes = processes_of(&arena, report),
		.n_processes = report->n_processes,
		.why = abi_str_of(str_of(report->why)),
	};

	if (target.labels && target.processes)
		m->sink->add(m->sink->self, &target);
	else
		m->failed = true;
	arena_free(&arena);
}

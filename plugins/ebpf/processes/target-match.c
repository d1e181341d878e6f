/* SPDX-License-Identifier: Apache-2.0 */
/* See target-match.h. A match is one block of memory whose strings are those of its target's row in
 * the table: when the row changes or goes, it takes them along to the replaced ones.
 *
 * Invariants: a row that stands for something has its match as `user` (unless memory was short);
 * the index has one match for each process or container, the one whose row comes last, and the
 * others hang from it in falling order; there is room for all matches among the replaced ones, so
 * that a target can always go. */
#include "ebpf/processes/target-match.h"

#include "abi/target-row.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/index.h"
#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>

#define LABELS_MAX 256u

/* What the symbolizer reads: it goes on. */
#define SYMBOLIZE "__symbolize__"

/* What targets are matched and named by; what else begins with two underscores goes nowhere. */
static bool keeps(struct str name)
{
	return !str_starts(name, STR("__")) || target_selector_reads(name) ||
	       target_service_reads(name) || str_is(name, SYMBOLIZE);
}

struct matcher {
	struct target_table *table;
	VEC(struct match *) all;
	VEC(struct match *) replaced;
	struct index index; /* positions in `all` */
	size_t n_containers;
	struct match *fallback;
	struct target_label *default_labels; /* of the next fallback */
	uint32_t n_default_labels;
	bool default_enabled, default_is_news;
	bool incomplete; /* a row may lack its match */
	uint64_t generation;
};

struct matcher *matcher_new(void)
{
	struct matcher *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->table = target_table_new_keeping(keeps);
	if (!m->table) {
		free(m);
		return NULL;
	}
	return m;
}

static void match_free(struct match *match)
{
	if (match)
		free(match->strings);
	free(match);
}

void matcher_free(struct matcher *m)
{
	if (!m)
		return;
	matcher_settle(m);
	vec_each (&m->all, match)
		match_free(*match);
	match_free(m->fallback);
	vec_free(&m->all);
	vec_free(&m->replaced);
	index_free(&m->index);
	free(m->default_labels);
	target_table_free(m->table);
	free(m);
}

/* Whether a label goes into a batch. */
static bool is_kept(const struct target_label *label)
{
	if (!label->value.n || str_is(label->name, "service_name"))
		return false;
	return !str_starts(label->name, STR("__")) || str_is(label->name, SYMBOLIZE);
}

/* The labels of a batch from those of a target; returns how many. */
static uint32_t make_labels(struct target_label *out, const struct target_label *labels, size_t n,
			    struct str service)
{
	uint32_t count = 0;

	for (size_t i = 0; i < n && count < LABELS_MAX; i++)
		if (is_kept(&labels[i]))
			out[count++] = labels[i];
	out[count++] = (struct target_label){STR("__name__"), STR("process_cpu")};
	out[count++] = (struct target_label){STR("service_name"), service};
	qsort(out, count, sizeof(*out), target_label_compare);
	return count;
}

/* A match whose labels borrow from these. A service name that is none of theirs is copied. */
static struct match *match_new(const struct target_label *labels, size_t n, struct str service,
			       size_t n_copied)
{
	size_t n_most = 2, bytes;
	struct target_label *out;
	struct match *match;

	for (size_t i = 0; i < n; i++)
		n_most += is_kept(&labels[i]);
	bytes = sizeof(*match) + n_most * sizeof(*out);
	match = malloc(bytes + n_copied);
	if (!match)
		return NULL;
	out = (struct target_label *)(match + 1);
	if (n_copied)
		service.p = memcpy((char *)match + bytes, service.p, n_copied);
	*match = (struct match){.labels = out, .at = UINT32_MAX};
	match->n_labels = make_labels(out, labels, n, service);
	for (uint32_t i = 0; i < match->n_labels; i++)
		match->fingerprint = hash_mix(hash_mix(match->fingerprint, hash_str(out[i].name)),
					      hash_str(out[i].value));
	return match;
}

static struct match *match_named(const struct target_label *labels, size_t n)
{
	struct arena made = ARENA_NULL;
	struct str service = target_service_name(&made, "ebpf/", labels, n);
	struct match *match =
		service.p ? match_new(labels, n, service, made.bytes ? service.n : 0) : NULL;

	arena_free(&made);
	return match;
}

struct sought {
	const struct matcher *m;
	struct target_selector selector;
};

static bool same(const void *context, uint32_t position)
{
	const struct sought *sought = context;
	const struct match *match;

	check(position < sought->m->all.n);
	match = sought->m->all.p[position];
	return match->pid == sought->selector.pid &&
	       str_eq(match->container, sought->selector.container);
}

static uint64_t hash_of(struct target_selector selector)
{
	return selector.pid ? hash_u64(selector.pid) : hash_str(selector.container);
}

struct match *matcher_of(const struct matcher *m, struct target_selector selector)
{
	struct sought sought = {m, selector};
	uint32_t at = selector.pid || selector.container.n
			      ? index_find(&m->index, hash_of(selector), same, &sought)
			      : INDEX_NONE;

	return at == INDEX_NONE ? NULL : m->all.p[at];
}

static struct target_selector stands_for(const struct match *match)
{
	return (struct target_selector){match->pid, match->container};
}

/* Adds one to those that select the same: of several with one id the last wins. */
static int rank(struct matcher *m, struct match *match)
{
	uint64_t hash = hash_of(stands_for(match));
	struct match *before = matcher_of(m, stands_for(match));

	if (!before)
		return index_add(&m->index, hash, match->at);
	if (target_row_compare(match->row, before->row) > 0) {
		match->lesser = before;
		index_move(&m->index, hash, before->at, match->at);
		return 0;
	}
	while (before->lesser && target_row_compare(match->row, before->lesser->row) < 0)
		before = before->lesser;
	match->lesser = before->lesser;
	before->lesser = match;
	return 0;
}

static void unrank(struct matcher *m, const struct match *match)
{
	uint64_t hash = hash_of(stands_for(match));
	struct match *before = matcher_of(m, stands_for(match));

	check(before);
	if (before != match) {
		while (before->lesser != match)
			before = before->lesser;
		before->lesser = match->lesser;
	} else if (match->lesser) {
		index_move(&m->index, hash, match->at, match->lesser->at);
	} else {
		index_remove(&m->index, hash, match->at);
	}
}

/* Room for one more match here, and for all of them among the replaced. */
static bool reserve(struct matcher *m)
{
	return m->all.n < INDEX_NONE - 1 && vec_reserve(&m->all, 1) &&
	       vec_reserve(&m->replaced, m->all.n + 2);
}

/* Makes the match of a row, if that stands for anything. 0 or -ENOMEM. */
static int add(struct matcher *m, struct target_row *row)
{
	struct target_selector selector = target_selector_of(row->labels, row->n_labels);
	struct match *match;

	if (!selector.pid && !selector.container.n)
		return 0;
	match = reserve(m) ? match_named(row->labels, row->n_labels) : NULL;
	if (!match)
		return -ENOMEM;
	check(!row->user);
	match->pid = selector.pid;
	match->container = selector.container;
	match->row = row;
	match->at = (uint32_t)m->all.n;
	m->all.p[m->all.n++] = match;
	if (rank(m, match) < 0) {
		m->all.n--;
		match_free(match);
		return -ENOMEM;
	}
	m->n_containers += match->container.n > 0;
	row->user = match;
	return 0;
}

/* Whoever uses it may go on; the strings are its own from now on. */
static void retire(struct matcher *m, struct match *match, struct target_label *strings)
{
	check(m->replaced.n < m->replaced.capacity);
	match->strings = strings;
	match->row = NULL;
	match->lesser = NULL;
	match->at = (uint32_t)m->replaced.n;
	m->replaced.p[m->replaced.n++] = match;
}

static void drop(struct matcher *m, struct target_row *row)
{
	struct match *match = row->user, *last = m->all.p[m->all.n - 1];

	check(match->row == row && m->all.p[match->at] == match);
	unrank(m, match);
	if (last != match) {
		if (matcher_of(m, stands_for(last)) == last)
			index_move(&m->index, hash_of(stands_for(last)), last->at, match->at);
		m->all.p[match->at] = last;
		last->at = match->at;
	}
	m->all.n--;
	m->n_containers -= match->container.n > 0;
	row->user = NULL;
	retire(m, match, target_row_take_former(row));
}

static void on_change(void *context, int change, struct target_row *row)
{
	struct matcher *m = context;

	if (row->user)
		drop(m, row);
	if (change != TARGET_REMOVED && add(m, row) < 0)
		m->incomplete = true;
	m->generation++;
}

int matcher_apply(struct matcher *m, const struct andiron_targets *update)
{
	return target_table_apply(m->table, update, on_change, m);
}

int matcher_set_default(struct matcher *m, bool enabled, const struct target_label *labels,
			size_t n)
{
	uint32_t n_copy;
	struct target_label *copy = target_labels_copy(labels, n, &n_copy);

	if (!copy)
		return -ENOMEM;
	free(m->default_labels);
	m->default_labels = copy;
	m->n_default_labels = n_copy;
	m->default_enabled = enabled;
	m->default_is_news = true;
	return 0;
}

static int make_default(struct matcher *m)
{
	size_t n = m->n_default_labels;
	struct match *match = NULL;

	if (m->default_enabled) {
		match = n ? match_named(m->default_labels, n)
			  : match_new(NULL, 0, STR("ebpf/unspecified"), 0);
		if (!match)
			return -ENOMEM;
		match->strings = m->default_labels;
		m->default_labels = NULL;
	}
	if (m->fallback)
		retire(m, m->fallback, m->fallback->strings);
	m->fallback = match;
	m->default_is_news = false;
	m->generation++;
	return 0;
}

const struct match *matcher_default(const struct matcher *m)
{
	return m->fallback;
}

static void add_missing(void *context, int change, struct target_row *row)
{
	struct matcher *m = context;

	if (!row->user && add(m, row) < 0)
		m->incomplete = true;
	m->generation++;
}

int matcher_rebuild(struct matcher *m)
{
	if (m->default_is_news && (!reserve(m) || make_default(m) < 0))
		return -ENOMEM;
	if (m->incomplete) {
		m->incomplete = false;
		target_table_each(m->table, add_missing, m);
	}
	return m->incomplete ? -ENOMEM : 0;
}

void matcher_settle(struct matcher *m)
{
	vec_each (&m->replaced, match)
		match_free(*match);
	m->replaced.n = 0;
}

void matcher_use(struct matcher *m, const struct match *match)
{
	if (match && match->at < m->replaced.n && m->replaced.p[match->at] == match)
		m->replaced.p[match->at]->used = true;
}

void matcher_prune(struct matcher *m)
{
	uint32_t kept = 0;

	vec_each (&m->replaced, at) {
		struct match *match = *at;

		if (!match->used) {
			match_free(match);
			continue;
		}
		match->used = false;
		match->at = kept;
		m->replaced.p[kept++] = match;
	}
	m->replaced.n = kept;
}

uint64_t matcher_generation(const struct matcher *m)
{
	return m->generation;
}

struct match *matcher_find(struct matcher *m, uint32_t pid, uint32_t root, struct str container)
{
	struct match *match = matcher_of(m, (struct target_selector){.pid = pid});

	if (!match)
		match = matcher_of(m, (struct target_selector){.pid = root});
	if (!match)
		match = matcher_of(m, (struct target_selector){.container = container});
	return match ? match : m->fallback;
}

void matcher_each(const struct matcher *m, target_change_fn fn, void *context)
{
	target_table_each(m->table, fn, context);
}

struct match *const *matcher_all(struct matcher *m, size_t *ret_n)
{
	*ret_n = m->all.n;
	return m->all.p;
}

bool matcher_has_containers(const struct matcher *m)
{
	return m->n_containers > 0;
}

bool matcher_has_pid(struct matcher *m, uint32_t pid)
{
	return matcher_of(m, (struct target_selector){.pid = pid}) != NULL;
}

bool matcher_has_container(struct matcher *m, struct str container)
{
	return matcher_of(m, (struct target_selector){.container = container}) != NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See match.h. All matches are made anew after a change, from an arena of
 * their own: one pass over the targets, and no bookkeeping to get wrong. */
#include "match.h"

#include "base/arena.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/index.h"
#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>

#define LABELS_MAX 256u
#define N_OF(names) (sizeof(names) / sizeof((names)[0]))

/* What targets are matched and named by; what else begins with two underscores goes
 * nowhere. */
static const char *const service_names[] = {
	"service_name",
	"__meta_kubernetes_pod_annotation_pyroscope_io_service_name",
};
static const char *const later_names[] = {
	"__meta_docker_container_name",
	"__meta_dockerswarm_container_label_service_name",
	"__meta_dockerswarm_service_name",
};
static const char *const other_names[] = {
	"__meta_kubernetes_namespace",
	"__meta_kubernetes_pod_container_name",
};
/* What the symbolizer reads: it goes on. */
static const char *const onward_names[] = {"__symbolize__"};

static bool is_one_of(struct str name, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_is(name, names[i]))
			return true;
	return false;
}

static bool keeps(struct str name)
{
	return !str_starts(name, STR("__")) || subject_reads(name) ||
	       is_one_of(name, service_names, N_OF(service_names)) ||
	       is_one_of(name, later_names, N_OF(later_names)) ||
	       is_one_of(name, other_names, N_OF(other_names)) ||
	       is_one_of(name, onward_names, N_OF(onward_names));
}

struct matches {
	struct matches *older; /* replaced before this one was */
	bool used;             /* said by matcher_use */
	struct arena arena;
	VEC(struct match) list;
	struct index by_pid, by_container;
	struct match fallback;
	bool has_fallback;
	bool has_containers;
};

struct matcher {
	struct target_table *table;
	struct matches now;
	struct matches *replaced;
	struct arena default_arena;
	struct target_label *default_labels;
	size_t n_default_labels;
	bool default_enabled;
	uint64_t generation;
};

static void matches_fini(struct matches *s)
{
	vec_free(&s->list);
	index_free(&s->by_pid);
	index_free(&s->by_container);
	arena_free(&s->arena);
	*s = (struct matches){0};
}

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

void matcher_free(struct matcher *m)
{
	if (!m)
		return;
	target_table_free(m->table);
	matcher_settle(m);
	matches_fini(&m->now);
	arena_free(&m->default_arena);
	free(m);
}

/* Single changes do not matter: all is rebuilt. */
static void ignore_change(void *context, int change, struct target_row *row)
{
}

int matcher_apply(struct matcher *m, const struct andiron_targets *update)
{
	return target_table_apply(m->table, update, ignore_change, NULL);
}

int matcher_set_default(struct matcher *m, bool enabled, const struct target_label *labels,
			size_t n)
{
	struct arena arena = ARENA_NULL;
	struct target_label *copy = arena_array(&arena, struct target_label, n + 1);

	for (size_t i = 0; copy && i < n; i++) {
		copy[i].name = arena_str(&arena, labels[i].name);
		copy[i].value = arena_str(&arena, labels[i].value);
		if (!copy[i].name.p || !copy[i].value.p)
			copy = NULL;
	}
	if (!copy) {
		arena_free(&arena);
		return -ENOMEM;
	}
	arena_free(&m->default_arena);
	m->default_arena = arena;
	m->default_labels = copy;
	m->n_default_labels = n;
	m->default_enabled = enabled;
	return 0;
}

static struct str service_name(struct arena *arena, const struct target_label *labels, size_t n)
{
	struct str space, container, name;

	for (size_t i = 0; i < N_OF(service_names); i++) {
		name = subject_label(labels, n, service_names[i]);
		if (name.n)
			return name;
	}
	space = subject_label(labels, n, "__meta_kubernetes_namespace");
	container = subject_label(labels, n, "__meta_kubernetes_pod_container_name");
	if (space.n && container.n)
		return str_of(arena_printf(arena, "ebpf/%.*s/%.*s", STR_FMT(space),
					   STR_FMT(container)));
	for (size_t i = 0; i < N_OF(later_names); i++) {
		name = subject_label(labels, n, later_names[i]);
		if (name.n)
			return name;
	}
	return STR("unspecified");
}

static int by_name(const void *a, const void *b)
{
	const struct target_label *x = a, *y = b;

	return str_cmp(x->name, y->name);
}

/* Whether a label goes into a batch. */
static bool is_kept(const struct target_label *label)
{
	if (!label->value.n || str_is(label->name, "service_name"))
		return false;
	return !str_starts(label->name, STR("__")) ||
	       is_one_of(label->name, onward_names, N_OF(onward_names));
}

/* The labels of a batch from those of a target; strings go to the arena. */
static int make_labels(struct arena *arena, const struct target_label *labels, size_t n,
		       struct str service, struct match *ret)
{
	struct target_label *out = arena_array(arena, struct target_label, n + 2);
	uint32_t count = 0;

	if (!out)
		return -ENOMEM;
	for (size_t i = 0; i < n && count < LABELS_MAX; i++)
		if (is_kept(&labels[i]))
			out[count++] = labels[i];
	out[count++] = (struct target_label){STR("__name__"), STR("process_cpu")};
	out[count++] = (struct target_label){STR("service_name"), service};
	qsort(out, count, sizeof(*out), by_name);
	for (uint32_t i = 0; i < count; i++) {
		out[i].name = arena_str(arena, out[i].name);
		out[i].value = arena_str(arena, out[i].value);
		if (!out[i].name.p || !out[i].value.p)
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < count; i++)
		ret->fingerprint = hash_mix(hash_mix(ret->fingerprint, hash_str(out[i].name)),
					    hash_str(out[i].value));
	ret->labels = out;
	ret->n_labels = count;
	return 0;
}

struct sought {
	const struct matches *matches;
	uint32_t pid;
	struct str container;
};

static bool same_pid(const void *context, uint32_t position)
{
	const struct sought *sought = context;

	check(position < sought->matches->list.n);
	return sought->matches->list.p[position].pid == sought->pid;
}

static bool same_container(const void *context, uint32_t position)
{
	const struct sought *sought = context;

	check(position < sought->matches->list.n);
	return str_eq(sought->matches->list.p[position].container, sought->container);
}

/* The last of several targets with one id wins. */
static int index_match(struct matches *s, uint32_t position)
{
	const struct match *match = &s->list.p[position];
	struct sought sought = {s, match->pid, match->container};
	struct index *index = match->pid ? &s->by_pid : &s->by_container;
	uint64_t hash = match->pid ? hash_u64(match->pid) : hash_str(match->container);
	uint32_t former =
		index_find(index, hash, match->pid ? same_pid : same_container, &sought);

	if (former == INDEX_NONE)
		return index_add(index, hash, position);
	index_move(index, hash, former, position);
	return 0;
}

struct building {
	struct matches made;
	int result;
};

static void add_target(void *context, int change, struct target_row *row)
{
	struct building *b = context;
	struct subject subject = subject_of(row->labels, row->n_labels);
	struct match match = {.pid = subject.pid, .container = subject.container};

	if (b->result != 0 || (!match.pid && !match.container.n))
		return;
	b->result = -ENOMEM;
	if (match.container.n) {
		match.container = arena_str(&b->made.arena, match.container);
		if (!match.container.p)
			return;
		b->made.has_containers = true;
	}
	if (make_labels(&b->made.arena, row->labels, row->n_labels,
			service_name(&b->made.arena, row->labels, row->n_labels), &match) != 0)
		return;
	if (vec_push(&b->made.list, match))
		b->result = index_match(&b->made, (uint32_t)b->made.list.n - 1);
}

static int add_default(struct matcher *m, struct building *b)
{
	struct str service =
		m->n_default_labels ?
			service_name(&b->made.arena, m->default_labels, m->n_default_labels) :
			STR("ebpf/unspecified");

	if (!m->default_enabled)
		return 0;
	b->made.has_fallback = true;
	return make_labels(&b->made.arena, m->default_labels, m->n_default_labels, service,
			   &b->made.fallback);
}

int matcher_rebuild(struct matcher *m)
{
	struct matches *replaced = malloc(sizeof(*replaced));
	struct building b = {0};

	if (!replaced)
		return -ENOMEM;
	b.result = add_default(m, &b);
	target_table_each(m->table, add_target, &b);
	if (b.result != 0) {
		matches_fini(&b.made);
		free(replaced);
		return b.result;
	}
	*replaced = m->now;
	replaced->older = m->replaced;
	m->replaced = replaced;
	m->now = b.made;
	m->generation++;
	return 0;
}

void matcher_settle(struct matcher *m)
{
	while (m->replaced) {
		struct matches *older = m->replaced->older;

		matches_fini(m->replaced);
		free(m->replaced);
		m->replaced = older;
	}
}

void matcher_use(struct matcher *m, const struct match *match)
{
	for (struct matches *s = m->replaced; match && s; s = s->older)
		s->used |= match >= s->list.p && match < s->list.p + s->list.n;
}

void matcher_prune(struct matcher *m)
{
	struct matches **at = &m->replaced;

	while (*at) {
		struct matches *s = *at;
		bool used = s->used;

		s->used = false;
		if (used) {
			at = &s->older;
			continue;
		}
		*at = s->older;
		matches_fini(s);
		free(s);
	}
}

uint64_t matcher_generation(const struct matcher *m)
{
	return m->generation;
}

static struct match *find_pid(struct matcher *m, uint32_t pid)
{
	struct sought sought = {.matches = &m->now, .pid = pid};
	uint32_t i = pid ? index_find(&m->now.by_pid, hash_u64(pid), same_pid, &sought) : INDEX_NONE;

	return i == INDEX_NONE ? NULL : &m->now.list.p[i];
}

static struct match *find_container(struct matcher *m, struct str container)
{
	struct sought sought = {.matches = &m->now, .container = container};
	uint32_t i = container.n ? index_find(&m->now.by_container, hash_str(container),
					      same_container, &sought) :
				   INDEX_NONE;

	return i == INDEX_NONE ? NULL : &m->now.list.p[i];
}

struct match *matcher_find(struct matcher *m, uint32_t pid, uint32_t root, struct str container)
{
	struct match *match = find_pid(m, pid);

	if (!match)
		match = find_pid(m, root);
	if (!match)
		match = find_container(m, container);
	if (!match && m->now.has_fallback)
		match = &m->now.fallback;
	return match;
}

void matcher_each(const struct matcher *m, target_change_fn fn, void *context)
{
	target_table_each(m->table, fn, context);
}

const struct match *matcher_of(struct matcher *m, struct subject subject)
{
	return subject.pid ? find_pid(m, subject.pid) : find_container(m, subject.container);
}

struct match *matcher_all(struct matcher *m, size_t *ret_n)
{
	*ret_n = m->now.list.n;
	return m->now.list.p;
}

bool matcher_has_containers(const struct matcher *m)
{
	return m->now.has_containers;
}

bool matcher_has_pid(struct matcher *m, uint32_t pid)
{
	return find_pid(m, pid) != NULL;
}

bool matcher_has_container(struct matcher *m, struct str container)
{
	return find_container(m, container) != NULL;
}

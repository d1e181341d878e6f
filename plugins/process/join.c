/* SPDX-License-Identifier: Apache-2.0 */
/* Groups are found by hash; members and containers hang in lists in them. Several targets may stand
 * for one container (one for each port): the last in their order gives the labels, as in Alloy. */
#include "process/join.h"

#include "base/check.h"
#include "base/hash.h"
#include "base/index.h"
#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>

/* Where rows stand: containers without an id, processes by pid, containers. */
#define ORDER_PROCESSES  (UINT64_C(1) << 62)
#define ORDER_CONTAINERS (UINT64_C(2) << 62)
#define ORDER_MASK       (ORDER_PROCESSES - 1)

struct container {
	const struct target_row *row; /* the input's */
	uint64_t output;              /* its row in the output */
	struct join_group *group;     /* NULL: without an id */
	struct container *next;       /* in the group */
};

struct join_group {
	uint32_t position; /* in groups */
	struct join_member *members;
	struct container *containers;
	size_t n_id;
	char id[];
};

struct join {
	struct target_list *list;
	struct target_table *input;
	join_touch_fn touch;
	void *context;
	VEC(struct join_group *) groups;
	struct index index;
	VEC(struct target_label) scratch;
	uint64_t last_row;
	int failure; /* of the update being applied */
};

struct join *join_new(struct target_list *list, join_touch_fn touch, void *context)
{
	struct join *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	*j = (struct join){
		.list = list, .input = target_table_new(), .touch = touch, .context = context};
	if (j->input)
		return j;
	free(j);
	return NULL;
}

static void free_container(void *context, int change, struct target_row *row)
{
	free(row->user);
}

void join_free(struct join *j)
{
	if (!j)
		return;
	target_table_each(j->input, free_container, NULL);
	target_table_free(j->input);
	vec_each (&j->groups, group)
		free(*group);
	vec_free(&j->groups);
	index_free(&j->index);
	vec_free(&j->scratch);
	free(j);
}

uint64_t join_row(struct join *j)
{
	return ++j->last_row;
}

struct probe {
	const struct join *join;
	struct str id;
};

static struct str group_id(const struct join_group *g)
{
	return (struct str){g->id, g->n_id};
}

static bool same(const void *context, uint32_t position)
{
	const struct probe *p = context;

	return str_eq(group_id(p->join->groups.p[position]), p->id);
}

/* The group of an id, made if need be; NULL when memory is short. */
static struct join_group *group_of(struct join *j, struct str id)
{
	const struct probe probe = {j, id};
	uint32_t position = index_find(&j->index, hash_str(id), same, &probe);
	struct join_group *g;

	if (position != INDEX_NONE)
		return j->groups.p[position];
	if (!vec_reserve(&j->groups, 1))
		return NULL;
	g = calloc(1, sizeof(*g) + id.n);
	if (!g)
		return NULL;
	memcpy(g->id, id.p, id.n);
	g->n_id = id.n;
	g->position = (uint32_t)j->groups.n;
	if (index_add(&j->index, hash_str(id), g->position)) {
		free(g);
		return NULL;
	}
	j->groups.p[j->groups.n++] = g;
	return g;
}

/* Frees a group that holds nothing any more; the last one takes its place. */
static void settle(struct join *j, struct join_group *g)
{
	struct join_group *last = j->groups.p[j->groups.n - 1];

	if (g->members || g->containers)
		return;
	check(index_remove(&j->index, hash_str(group_id(g)), g->position));
	if (last != g) {
		index_move(&j->index, hash_str(group_id(last)), last->position, g->position);
		j->groups.p[g->position] = last;
		last->position = g->position;
	}
	j->groups.n--;
	free(g);
}

int join_enter(struct join *j, struct join_member *member, struct str container)
{
	struct join_group *g;

	if (member->group && str_eq(group_id(member->group), container))
		return 0;
	join_leave(j, member);
	if (!container.n)
		return 0;
	g = group_of(j, container);
	if (!g)
		return -ENOMEM;
	*member = (struct join_member){.group = g, .next = g->members};
	if (g->members)
		g->members->previous = member;
	g->members = member;
	return 0;
}

void join_leave(struct join *j, struct join_member *member)
{
	struct join_group *g = member->group;

	if (!g)
		return;
	if (member->next)
		member->next->previous = member->previous;
	if (member->previous)
		member->previous->next = member->next;
	else
		g->members = member->next;
	*member = (struct join_member){0};
	settle(j, g);
}

/* The container target whose labels count: the last in the list. */
static const struct target_row *winner(const struct join_group *g)
{
	const struct target_row *best = NULL;

	for (const struct container *c = g ? g->containers : NULL; c; c = c->next) {
		const struct target_row *row = c->row;

		if (!best || row->producer > best->producer ||
		    (row->producer == best->producer &&
		     (row->order > best->order ||
		      (row->order == best->order && row->row > best->row))))
			best = row;
	}
	return best;
}

int join_set(struct join *j, const struct join_member *member, uint64_t row, uint32_t pid,
	     const struct target_label *labels, size_t n)
{
	const struct target_row *container = winner(member->group);
	size_t more = container ? container->n_labels : 0;

	if (!more)
		return target_list_set(j->list, row, ORDER_PROCESSES | pid, labels, n);
	j->scratch.n = 0;
	if (!vec_reserve(&j->scratch, n + more))
		return -ENOMEM;
	/* Of equal names the last one stands. */
	memcpy(j->scratch.p, labels, n * sizeof(*labels));
	memcpy(j->scratch.p + n, container->labels, more * sizeof(*labels));
	return target_list_set(j->list, row, ORDER_PROCESSES | pid, j->scratch.p, n + more);
}

struct str join_container_of(const struct target_row *row)
{
	static const struct str runtimes[] = {
		{"docker://", 9}, {"containerd://", 13}, {"cri-o://", 8}};
	struct str id = target_label_value(row, "__container_id__");

	if (id.n)
		return id;
	id = target_label_value(row, "__meta_kubernetes_pod_container_id");
	for (size_t i = 0; i < sizeof(runtimes) / sizeof(*runtimes); i++)
		if (id.n > runtimes[i].n && str_starts(id, runtimes[i]))
			return str_skip(id, runtimes[i].n);
	return id.n ? STR_NULL : target_label_value(row, "__meta_docker_container_id");
}

static void touch(struct join *j, struct join_group *g)
{
	for (struct join_member *m = g ? g->members : NULL; m; m = m->next)
		j->touch(j->context, m);
}

static void detach(struct join *j, struct container *c)
{
	struct join_group *g = c->group;

	if (!g)
		return;
	for (struct container **at = &g->containers; *at; at = &(*at)->next) {
		if (*at != c)
			continue;
		*at = c->next;
		break;
	}
	c->group = NULL;
	c->next = NULL;
	touch(j, g);
	settle(j, g);
}

static int attach(struct join *j, struct container *c)
{
	struct str id = join_container_of(c->row);
	struct join_group *g;

	if (!id.n)
		return 0;
	g = group_of(j, id);
	if (!g)
		return -ENOMEM;
	c->group = g;
	c->next = g->containers;
	g->containers = c;
	touch(j, g);
	return 0;
}

static int put(struct join *j, const struct container *c)
{
	uint64_t order = (c->row->order & ORDER_MASK) | (c->group ? ORDER_CONTAINERS : 0);

	return target_list_set(j->list, c->output, order, c->row->labels, c->row->n_labels);
}

static void on_change(void *context, int change, struct target_row *row)
{
	struct join *j = context;
	struct container *c = row->user;

	if (c) {
		detach(j, c);
	} else if (change != TARGET_REMOVED) {
		c = calloc(1, sizeof(*c));
		if (!c) {
			j->failure = -ENOMEM;
			return;
		}
		*c = (struct container){.row = row, .output = join_row(j)};
		row->user = c;
	}
	if (change == TARGET_REMOVED) {
		if (c)
			target_list_remove(j->list, c->output);
		free(c);
		row->user = NULL;
		return;
	}
	if (attach(j, c) || put(j, c))
		j->failure = -ENOMEM;
}

int join_apply(struct join *j, const struct andiron_targets *update)
{
	int r;

	j->failure = 0;
	r = target_table_apply(j->input, update, on_change, j);
	return r ? r : j->failure;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The order of the nodes, by taking away again and again the first that waits for nobody (so what
 * the edges leave open stays as in the files). If all that are left wait for each other, walking
 * from one to a producer of its runs in a circle; that is reported and taken away too, so that
 * every circle is. */
#include "host/lang/draft.h"

#include "base/check.h"

#define MAX_SHOWN 20 /* members of a circle */

struct sort {
	struct draft *d;
	struct draft_ends out, in;
	uint32_t *waits; /* for each node, how many edges come in from those that are left */
	uint32_t *ready; /* a heap, least first: nodes that wait for nobody */
	uint32_t *order;
	uint32_t *came; /* on a walk: the edge + 1 that leads back here */
	uint32_t n, n_ready;
	uint32_t left; /* all before it are taken */
	bool *taken;
};

struct draft_ends draft_edges_by(struct draft *d, bool to)
{
	size_t n = d->nodes.n;
	struct draft_ends ends = {
		.begin = lang_array(&d->l, uint32_t, n + 2),
		.list = lang_array(&d->l, uint32_t, d->edges.n + 1),
	};

	if (d->l.no_memory)
		return ends;
	/* One place to the right, so that filling the list moves each begin to where it belongs. */
	vec_each (&d->edges, e)
		if (e->plan.kind)
			ends.begin[(to ? e->plan.to : e->plan.from) + 2]++;
	for (size_t i = 2; i < n + 2; i++)
		ends.begin[i] += ends.begin[i - 1];
	for (uint32_t i = 0; i < d->edges.n; i++) {
		const struct plan_edge *e = &d->edges.p[i].plan;

		if (e->kind)
			ends.list[ends.begin[(to ? e->to : e->from) + 1]++] = i;
	}
	return ends;
}

static void push_ready(struct sort *s, uint32_t node)
{
	uint32_t at = s->n_ready++;

	for (; at && s->ready[(at - 1) / 2] > node; at = (at - 1) / 2)
		s->ready[at] = s->ready[(at - 1) / 2];
	s->ready[at] = node;
}

static uint32_t pop_ready(struct sort *s)
{
	uint32_t least = s->ready[0], last = s->ready[--s->n_ready], at = 0, child;

	while ((child = 2 * at + 1) < s->n_ready) {
		if (child + 1 < s->n_ready && s->ready[child + 1] < s->ready[child])
			child++;
		if (s->ready[child] >= last)
			break;
		s->ready[at] = s->ready[child];
		at = child;
	}
	s->ready[at] = last;
	return least;
}

static void take(struct sort *s, uint32_t node)
{
	check(!s->taken[node] && s->n < s->d->nodes.n);
	s->taken[node] = true;
	s->order[s->n++] = node;
	for (uint32_t i = s->out.begin[node]; i < s->out.begin[node + 1]; i++) {
		uint32_t to = s->d->edges.p[s->out.list[i]].plan.to;

		if (--s->waits[to] == 0 && !s->taken[to])
			push_ready(s, to);
	}
}

/* An edge to `node` from one that is left. */
static uint32_t edge_into(const struct sort *s, uint32_t node)
{
	for (uint32_t i = s->in.begin[node]; i < s->in.begin[node + 1]; i++)
		if (!s->taken[s->d->edges.p[s->in.list[i]].plan.from])
			return s->in.list[i];
	absurd("a node waits for nobody");
}

/* Walks against the edges until a node comes again; that one is in a circle. */
static uint32_t find_circle(struct sort *s)
{
	uint32_t node;

	while (s->taken[s->left])
		s->left++;
	node = s->left;
	memset(s->came, 0, s->d->nodes.n * sizeof(*s->came));
	while (!s->came[node]) {
		uint32_t edge = edge_into(s, node);

		s->came[node] = edge + 1;
		node = s->d->edges.p[edge].plan.from;
	}
	return node;
}

/* From `start` against the edges round to it again, so the text is put together from its end. */
static void report_circle(struct sort *s, uint32_t start)
{
	struct lang *l = &s->d->l;
	const char *path = s->d->nodes.p[start].plan.id, *hint = "";
	struct place place = {0};
	uint32_t node = start, shown = 0;

	do {
		const struct draft_edge *e = &s->d->edges.p[s->came[node] - 1];
		const char *from = s->d->nodes.p[e->plan.from].plan.id;
		const char *to = s->d->nodes.p[e->plan.to].plan.id;

		if (!place.line)
			place = e->place;
		if (shown < MAX_SHOWN) {
			path = arena_printf(l->arena, "%s → %s", from, path);
			hint = arena_printf(l->arena, "%s → %s at %s:%u:%u\n%s", from, to,
					    e->place.source ? e->place.source->name : "",
					    e->place.line, e->place.column, hint);
		} else if (shown == MAX_SHOWN) {
			path = arena_printf(l->arena, "… → %s", path);
		}
		l->no_memory |= !path || !hint;
		node = e->plan.from;
		shown++;
	} while (node != start && !l->no_memory);
	if (!l->no_memory)
		lang_error(l, place, hint, "these components feed each other in a circle: %s",
			   path);
}

static void take_circle(struct sort *s, uint32_t start)
{
	uint32_t node = start;

	do {
		uint32_t next = s->d->edges.p[s->came[node] - 1].plan.from;

		take(s, node);
		node = next;
	} while (node != start);
}

uint32_t *draft_sort(struct draft *d)
{
	size_t n = d->nodes.n;
	struct sort s = {
		.d = d,
		.out = draft_edges_by(d, false),
		.in = draft_edges_by(d, true),
		.waits = lang_array(&d->l, uint32_t, n),
		.ready = lang_array(&d->l, uint32_t, n),
		.order = lang_array(&d->l, uint32_t, n),
		.came = lang_array(&d->l, uint32_t, n),
		.taken = lang_array(&d->l, bool, n),
	};
	bool circles = false;

	if (d->l.no_memory)
		return NULL;
	for (uint32_t i = 0; i < n; i++) {
		s.waits[i] = s.in.begin[i + 1] - s.in.begin[i];
		if (!s.waits[i])
			push_ready(&s, i);
	}
	while (s.n < n && !d->l.no_memory) {
		uint32_t node;

		if (s.n_ready) {
			node = pop_ready(&s);
			if (!s.taken[node]) /* a member of a circle is */
				take(&s, node);
			continue;
		}
		circles = true;
		node = find_circle(&s);
		report_circle(&s, node);
		take_circle(&s, node);
	}
	check(d->l.no_memory || s.n == n);
	return circles || d->l.no_memory ? NULL : s.order;
}

/* --- What waits --- */

/* Targets are named by who gets them, receivers by who sends to them. */
static bool spread(struct draft *d, const struct draft_edge *e)
{
	bool targets = e->plan.kind == PLAN_TARGETS;
	struct draft_node *named = &d->nodes.p[targets ? e->plan.from : e->plan.to];
	struct draft_node *names = &d->nodes.p[targets ? e->plan.to : e->plan.from];

	if ((!targets && e->plan.kind != PLAN_BATCHES) || !named->waits_for || names->waits_for)
		return false;
	names->waits_for = named->waits_for;
	return true;
}

/* Components that name a value which nobody has supplied yet (supplied.h), and those that
 * name such a component: who has no targets, or nobody to send profiles to, would take samples and
 * lose them. They are not part of the plan, which lists them, and is built again when the value is
 * there. Who is only named by one that waits runs, so probes and metrics are served meanwhile. */
void draft_set_aside(struct draft *d)
{
	bool again = false;

	for (uint32_t i = 0; i < d->nodes.n; i++)
		again |= d->nodes.p[i].waits_for != NULL;
	while (again) {
		again = false;
		vec_each (&d->edges, e)
			again |= spread(d, e);
	}
	vec_each (&d->edges, e)
		if (e->plan.kind == DRAFT_VALUES || d->nodes.p[e->plan.from].waits_for ||
		    d->nodes.p[e->plan.to].waits_for)
			e->plan.kind = 0;
}

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
	uint32_t *waits; /* for each node, how many edges come in */
	uint32_t *order;
	uint32_t *came; /* on a walk: the edge + 1 that leads back here */
	uint32_t n;
	bool *taken;
};

static void take(struct sort *s, uint32_t node)
{
	check(!s->taken[node] && s->n < s->d->nodes.n);
	s->taken[node] = true;
	s->order[s->n++] = node;
	vec_each (&s->d->edges, e)
		if (e->plan.kind && e->plan.from == node)
			s->waits[e->plan.to]--;
}

static uint32_t first(const struct sort *s, bool ready)
{
	for (uint32_t i = 0; i < s->d->nodes.n; i++)
		if (!s->taken[i] && (!ready || s->waits[i] == 0))
			return i;
	return INDEX_NONE;
}

/* An edge to `node` from one that is left. */
static uint32_t edge_into(const struct sort *s, uint32_t node)
{
	for (uint32_t i = 0; i < s->d->edges.n; i++) {
		const struct plan_edge *e = &s->d->edges.p[i].plan;

		if (e->kind && e->to == node && !s->taken[e->from])
			return i;
	}
	absurd("a node waits for nobody");
}

/* Walks against the edges until a node comes again; that one is in a circle. */
static uint32_t find_circle(struct sort *s)
{
	uint32_t node = first(s, false);

	check(node != INDEX_NONE);
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
		.waits = lang_array(&d->l, uint32_t, n),
		.order = lang_array(&d->l, uint32_t, n),
		.came = lang_array(&d->l, uint32_t, n),
		.taken = lang_array(&d->l, bool, n),
	};
	bool circles = false;

	if (d->l.no_memory)
		return NULL;
	vec_each (&d->edges, e)
		if (e->plan.kind)
			s.waits[e->plan.to]++;
	while (s.n < n && !d->l.no_memory) {
		uint32_t node = first(&s, true);

		if (node != INDEX_NONE) {
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

/* SPDX-License-Identifier: Apache-2.0 */
/* See discovery-plan.h. */
#include "cli/targets/discovery-plan.h"

#include "base/buf.h"
#include "base/check.h"
#include "cli/targets/targets-file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define GONE UINT32_MAX

/* What becomes of each node. */
struct cut {
	struct plan *plan;
	size_t n_nodes; /* before the cut */
	struct discovery_plan *result;
	const struct andiron_value **given; /* by node; NULL: none */
	bool *kept;                         /* shown, and run unless it is given */
	uint32_t *moved;                    /* its new place, or GONE */
	struct error *err;
};

void discovery_plan_fini(struct discovery_plan *d)
{
	vec_free(&d->components);
}

static bool discovers(const struct plan_node *node)
{
	const struct andiron_component *c = node->registered->component;

	for (uint64_t i = 0; i < c->n_exports; i++)
		if (c->exports[i].type == ANDIRON_EXPORT_TARGETS)
			return !(c->flags & ANDIRON_COMPONENT_SERVICE);
	return false;
}

static bool has_targets_from(const struct plan *plan, uint32_t node)
{
	vec_each (&plan->edges, edge)
		if (edge->kind == PLAN_TARGETS && edge->to == node)
			return true;
	return false;
}

/* The node of that id that discovers, or GONE. */
static uint32_t find(const struct plan *plan, struct str id)
{
	for (uint32_t i = 0; i < plan->nodes.n; i++)
		if (str_is(id, plan->nodes.p[i].id) && discovers(&plan->nodes.p[i]))
			return i;
	return GONE;
}

static int unknown(const struct cut *c, struct str id)
{
	struct buf list = BUF_NULL;
	int r;

	vec_each (&c->plan->nodes, node)
		if (discovers(node))
			buf_printf(&list, "%s%s", list.n ? ", " : "", node->id);
	buf_putc(&list, '\0');
	r = error_set(c->err, -ENOENT, "no component \"%.*s\" exports targets; %s%s", STR_FMT(id),
		      list.n > 1 ? "there are " : "none does", list.failed ? "" : list.p);
	buf_free(&list);
	return r;
}

/* The one that finds targets by itself, for a --from that names none. */
static uint32_t only_source(const struct cut *c, const char *path)
{
	uint32_t found = GONE;

	for (uint32_t i = 0; i < c->plan->nodes.n; i++) {
		const struct plan_node *node = &c->plan->nodes.p[i];

		if (!discovers(node) || has_targets_from(c->plan, i) || c->given[i])
			continue;
		if (found != GONE) {
			error_set(c->err, -EINVAL,
				  "--from %s could stand for %s or %s; write --from %s=%s", path,
				  c->plan->nodes.p[found].id, node->id, c->plan->nodes.p[found].id,
				  path);
			return GONE;
		}
		found = i;
	}
	if (found == GONE)
		error_set(c->err, -EINVAL, "--from %s: no component finds targets by itself", path);
	return found;
}

/* "[COMPONENT=]FILE"; a file's name may hold an = of its own. */
static int take_given(struct cut *c, const char *text)
{
	struct str rest = str_of(text), id = str_cut(&rest, '=');
	const char *path = rest.p ? rest.p : text;
	uint32_t node;

	if (rest.p && find(c->plan, id) == GONE && access(text, F_OK) == 0) {
		rest = STR_NULL;
		path = text;
	}
	node = rest.p ? find(c->plan, id) : only_source(c, path);
	if (node == GONE)
		return rest.p ? unknown(c, id) : -EINVAL;
	if (c->given[node])
		return error_set(c->err, -EINVAL, "--from gives the targets of %s twice",
				 c->plan->nodes.p[node].id);
	return targets_file_read(path, &c->plan->arena, &c->given[node], c->err);
}

/* Nodes stand before those that they feed, so one pass from the end does. */
static void keep_ancestors(struct cut *c, uint32_t only)
{
	check(only < c->plan->nodes.n);
	c->kept[only] = true;
	for (uint32_t n = only + 1; n-- > 0;) {
		vec_each (&c->plan->edges, edge)
			if (edge->kind == PLAN_TARGETS && edge->to == n && c->kept[n] &&
			    !c->given[n])
				c->kept[edge->from] = true;
	}
}

static int choose(struct cut *c, const char *only)
{
	uint32_t node = only ? find(c->plan, str_of(only)) : GONE;

	if (only && node == GONE)
		return unknown(c, str_of(only));
	if (only)
		keep_ancestors(c, node);
	for (uint32_t i = 0; i < c->plan->nodes.n; i++) {
		if (!only)
			c->kept[i] = discovers(&c->plan->nodes.p[i]);
		if (c->kept[i] &&
		    !vec_push(&c->result->components,
			      ((struct discovered){c->plan->nodes.p[i].id, c->given[i]})))
			return -ENOMEM;
	}
	if (!c->result->components.n)
		return error_set(c->err, -ENOENT,
				 "no component of this configuration exports targets");
	return 0;
}

static void move_nodes(struct cut *c)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->plan->nodes.n; i++) {
		c->moved[i] = c->kept[i] && !c->given[i] ? n : GONE;
		if (c->moved[i] != GONE)
			c->plan->nodes.p[n++] = c->plan->nodes.p[i];
	}
	c->plan->nodes.n = n;
}

/* Edges between those that stay; one from a component that is given becomes the list that was
 * given. */
static int move_edges(struct cut *c)
{
	struct plan *plan = c->plan;
	size_t n = 0;

	for (size_t i = 0; i < plan->literals.n; i++) {
		struct plan_literal literal = plan->literals.p[i];

		check(literal.to < c->n_nodes);
		literal.to = c->moved[literal.to];
		if (literal.to != GONE)
			plan->literals.p[n++] = literal;
	}
	plan->literals.n = n;
	n = 0;
	for (size_t i = 0; i < plan->edges.n; i++) {
		struct plan_edge edge = plan->edges.p[i];
		const struct andiron_value *given = c->given[edge.from];
		uint32_t to = c->moved[edge.to], from = c->moved[edge.from];

		check(edge.from < c->n_nodes && edge.to < c->n_nodes);
		if (edge.kind != PLAN_TARGETS || to == GONE)
			continue;
		if (given && !vec_push(&plan->literals,
				       ((struct plan_literal){to, edge.order, edge.port, given})))
			return -ENOMEM;
		if (from == GONE)
			continue;
		edge.from = from;
		edge.to = to;
		check(edge.from < edge.to);
		plan->edges.p[n++] = edge;
	}
	plan->edges.n = n;
	return 0;
}

static int run(struct cut *c, const char *only, const struct texts *from)
{
	int r = 0;

	for (size_t i = 0; !r && i < from->n; i++)
		r = take_given(c, from->p[i]);
	if (!r)
		r = choose(c, only);
	if (r)
		return r;
	move_nodes(c);
	return move_edges(c);
}

int discovery_plan_cut(struct plan *plan, const char *only, const struct texts *from,
		       struct discovery_plan *ret, struct error *err)
{
	size_t n = plan->nodes.n + 1;
	struct cut c = {.plan = plan,
			.n_nodes = plan->nodes.n,
			.result = ret,
			.given = calloc(n, sizeof(*c.given)),
			.kept = calloc(n, sizeof(*c.kept)),
			.moved = calloc(n, sizeof(*c.moved)),
			.err = err};
	int r = -ENOMEM;

	*ret = (struct discovery_plan){0};
	if (c.given && c.kept && c.moved)
		r = run(&c, only, from);
	free(c.given);
	free(c.kept);
	free(c.moved);
	if (r)
		discovery_plan_fini(ret);
	return r == -ENOMEM ? error_set(err, r, "out of memory") : r;
}

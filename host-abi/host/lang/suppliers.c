/* SPDX-License-Identifier: Apache-2.0 */
/* One plan beside another: what runs goes on while those of the next plan begin that supply values
 * to it. They run before their consumers do, so nothing has to be asked for twice. Contracts in
 * host/plan.h. */
#include "host/lang/foreach-items.h"
#include "host/plan.h"

#include <errno.h>

static struct plan_node *find_node(const struct plan *plan, const char *id)
{
	vec_each (&plan->nodes, node)
		if (strcmp(node->id, id) == 0)
			return node;
	return NULL;
}

static bool waits(const struct plan *plan, const char *id)
{
	vec_each (&plan->waiting, waiting)
		if (strcmp(waiting->id, id) == 0)
			return true;
	return false;
}

static bool is_waited_for(const struct plan *plan, const char *id)
{
	vec_each (&plan->waiting, waiting)
		if (strcmp(waiting->waits_for, id) == 0)
			return true;
	return false;
}

/* Its list comes only from what runs with it, so that to wait beside it would be without end. */
static bool is_for_targets(const struct plan *plan, const char *id)
{
	const struct plan_node *node = find_node(plan, id);

	return node && node->registered == &foreach_items;
}

static bool stops_any(const struct plan *from, const struct plan *to)
{
	vec_each (&from->nodes, node)
		if (!node->implicit && !find_node(to, node->id))
			return true;
	return false;
}

const struct plan_waiting *plan_loses(const struct plan *from, const struct plan *to)
{
	const struct plan_waiting *first = NULL;

	vec_each (&to->waiting, waiting)
		if (!first && !waits(from, waiting->id) && !is_for_targets(to, waiting->waits_for))
			first = waiting;
	return first && stops_any(from, to) ? first : NULL;
}

static bool supplies(const struct andiron_component *c)
{
	for (uint64_t i = 0; i < c->n_exports; i++)
		if (c->exports[i].type == ANDIRON_EXPORT_VALUE)
			return true;
	return false;
}

int plan_add_suppliers(struct plan *plan, struct plan *next)
{
	bool good = true;

	vec_each (&next->nodes, node) {
		struct plan_node *known;

		if (!supplies(node->registered->component))
			continue;
		known = find_node(plan, node->id);
		if (!known)
			good &= vec_push(&plan->nodes, *node);
		else if (is_waited_for(next, node->id))
			*known = *node;
	}
	vec_each (&next->files, file)
		good &= vec_push(&plan->files, *file);
	plan->poll_ns = plan->poll_ns ?: next->poll_ns;
	arena_join(&plan->arena, &next->arena);
	plan_free(next);
	return good ? 0 : -ENOMEM;
}

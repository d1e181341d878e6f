/* SPDX-License-Identifier: Apache-2.0 */
/* Components that name a value which nobody has supplied yet (supplied.h), and those that
 * name such a component: who has no targets, or nobody to send profiles to, would take samples and
 * lose them. They are not part of the plan, which lists them, and is built again when the value is
 * there. Who is only named by one that waits runs, so probes and metrics are served meanwhile. */
#include "host/lang/draft.h"

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

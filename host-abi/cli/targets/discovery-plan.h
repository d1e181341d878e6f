/* SPDX-License-Identifier: Apache-2.0 */
/* The discovery part of a plan: the components that export targets, without services and without
 * consumers of the targets. Targets from a file may replace a component. */
#pragma once

#include "base/error.h"
#include "host/plan.h"
#include "cli/options.h"

/* One component of that part, in the plan's order. */
struct discovered {
	const char *id;
	const struct andiron_value *given; /* targets from a file, a LIST of MAPs; NULL: it runs */
};

struct discovery_plan {
	VEC(struct discovered) components;
};

/* Cuts the plan down, in place: to all that export targets, or (`only`) to that component and what
 * it gets its targets from. `from` holds [COMPONENT=]FILE.json texts. 0, or a negative errno with
 * what is wrong; then the plan is of no use. The ids and values live as long as the plan. */
int discovery_plan_cut(struct plan *plan, const char *only, const struct texts *from,
		       struct discovery_plan *ret, struct error *err);
void discovery_plan_fini(struct discovery_plan *d);

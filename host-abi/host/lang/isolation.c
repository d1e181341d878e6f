/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in isolation.h. A process of its own has batches or targets and nothing else of the
 * agent's: no objects, no tables of other plugins. */
#include "host/lang/isolation.h"

#include "host/registry/describe-check.h"

static bool lists(const char *const *ids)
{
	return ids && ids[0];
}

static bool exports_only(const struct andiron_component *c, uint32_t type)
{
	for (uint64_t i = 0; i < c->n_exports; i++)
		if (c->exports[i].type != type &&
		    c->exports[i].type != ANDIRON_EXPORT_CAPSULE)
			return false;
	return c->n_exports > 0;
}

bool isolation_forwards(const struct andiron_component *c)
{
	const struct andiron_option *o;

	if (!(c->flags & ANDIRON_COMPONENT_WRITER))
		for (uint32_t i = 0; (o = option_at(c->options, i)); i++)
			if (o->type == ANDIRON_TYPE_RECEIVERS)
				return true;
	return false;
}

const char *isolation_refusal(const struct registered_component *registered)
{
	const struct andiron_component *c = registered->component;

	if (!registered->plugin || !registered->plugin->generation)
		return "it is part of the program that runs the graph";
	if (c->flags & ANDIRON_COMPONENT_SYMBOLIZER)
		return "it reads the profiled files, which the agent holds open";
	if (c->flags & ANDIRON_COMPONENT_SERVICE)
		return "other components call it directly";
	if (c->flags & ANDIRON_COMPONENT_RAW_FRAMES ||
	    (c->batch ? !!c->targets : isolation_forwards(c)) ||
	    !exports_only(c, c->batch ? ANDIRON_EXPORT_RECEIVER : ANDIRON_EXPORT_TARGETS))
		return "only components that just take profiles, or just make targets, can be "
		       "isolated";
	if (lists(c->needs) || ANDIRON_HAS(c, andiron_component, wants))
		return "it uses tables of the agent or of other plugins";
	return NULL;
}

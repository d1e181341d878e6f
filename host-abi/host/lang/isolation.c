/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in isolation.h. A process of its own has batches and nothing else of the agent's: no
 * objects, no targets, no tables of other plugins. */
#include "host/lang/isolation.h"

static bool lists(const char *const *ids)
{
	return ids && ids[0];
}

static bool gives_batches_only(const struct andiron_component *c)
{
	for (uint64_t i = 0; i < c->n_exports; i++)
		if (c->exports[i].type != ANDIRON_EXPORT_RECEIVER &&
		    c->exports[i].type != ANDIRON_EXPORT_CAPSULE)
			return false;
	return true;
}

const char *isolation_refusal(const struct registered_component *registered)
{
	const struct andiron_component *c = registered->component;

	if (!registered->plugin || !registered->plugin->generation)
		return "it is part of the program that runs the graph";
	if (c->flags & ANDIRON_COMPONENT_SYMBOLIZER)
		return "it reads the profiled files, which the agent holds open; what parses them "
		       "runs in a process of its own as it is";
	if (c->flags & ANDIRON_COMPONENT_SERVICE)
		return "other components call it directly";
	if (c->flags & ANDIRON_COMPONENT_RAW_FRAMES)
		return "it takes samples, with what only the agent may do and holds open";
	if (!c->batch)
		return "it is given no profiles";
	if (c->targets)
		return "it is given targets, which stay in the agent";
	if (!gives_batches_only(c))
		return "others refer to what it makes";
	if (lists(c->needs) || ANDIRON_HAS(c, andiron_component, wants))
		return "it uses tables of the agent or of other plugins";
	return NULL;
}

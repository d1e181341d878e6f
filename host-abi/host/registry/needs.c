/* SPDX-License-Identifier: Apache-2.0 */
/* See needs.h. */
#include "host/registry/needs.h"

bool needs_lists(const char *const *ids, struct str id)
{
	for (; ids && *ids; ids++)
		if (str_is(id, *ids))
			return true;
	return false;
}

static bool begins_one_of(const char *const *beginnings, const char *id)
{
	for (; beginnings && *beginnings; beginnings++)
		if (str_starts(str_of(id), str_of(*beginnings)))
			return true;
	return false;
}

/* Whether a plan with component `a` may get component `b` in addition (lang/implicit.c). */
static bool brings(const struct andiron_component *a, const struct andiron_component *b)
{
	bool symbolizer = (a->flags & ANDIRON_COMPONENT_RAW_FRAMES) &&
			  (b->flags & ANDIRON_COMPONENT_SYMBOLIZER);
	const char *const *wants = ANDIRON_HAS(a, andiron_component, wants) ? a->wants : NULL;

	for (const char *const *id = b->offers; id && *id && !symbolizer; id++)
		if (needs_lists(a->needs, str_of(*id)) || begins_one_of(wants, *id))
			return true;
	return symbolizer;
}

bool needs_brings(const struct andiron_plugin *a, const struct andiron_plugin *b)
{
	for (uint64_t i = 0; i < a->n_components; i++)
		for (uint64_t k = 0; k < b->n_components; k++)
			if (brings(a->components[i], b->components[k]))
				return true;
	return false;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The hierarchy that holds containers. Contract in hierarchy.h. */
#include "proc/hierarchy.h"

/* Whether "NAME\tHIERARCHY\tGROUPS\tENABLED" has a hierarchy of v1. */
static bool is_v1(struct str line)
{
	uint64_t number = 0;

	str_cut(&line, '\t');
	return str_u64(str_cut(&line, '\t'), &number) && number != 0;
}

uint32_t proc_hierarchy(struct str proc_cgroups)
{
	static const struct {
		const char *name;
		uint32_t hierarchy;
	} known[] = {{"memory", PROC_HIERARCHY_MEMORY},
		     {"cpu", PROC_HIERARCHY_CPU},
		     {"pids", PROC_HIERARCHY_PIDS}};
	uint32_t best = PROC_HIERARCHY_V2;

	while (proc_cgroups.n) {
		struct str line = str_cut(&proc_cgroups, '\n');
		struct str name = str_first(line, str_find(line, '\t'));

		for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
			if (str_is(name, known[i].name) && is_v1(line) &&
			    (!best || known[i].hierarchy < best))
				best = known[i].hierarchy;
	}
	return best;
}

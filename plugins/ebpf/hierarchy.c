/* SPDX-License-Identifier: Apache-2.0 */
/* See hierarchy.h. Format: cgroups(7), "name hierarchy num_cgroups enabled",
 * hierarchy 0 meaning the unified one. */
#include "hierarchy.h"

#include "sampler.h"

#include "base/buf.h"
#include "base/file.h"

#include <fcntl.h>

static uint32_t of_controller(struct str name)
{
	if (str_is(name, "memory"))
		return SAMPLER_HIERARCHY_MEMORY;
	if (str_is(name, "cpu"))
		return SAMPLER_HIERARCHY_CPU;
	if (str_is(name, "pids"))
		return SAMPLER_HIERARCHY_PIDS;
	return SAMPLER_HIERARCHY_V2;
}

uint32_t hierarchy_of_text(struct str proc_cgroups)
{
	uint32_t best = SAMPLER_HIERARCHY_V2;

	while (proc_cgroups.n) {
		struct str line = str_cut(&proc_cgroups, '\n');
		uint32_t controller = of_controller(str_cut(&line, '\t'));
		uint64_t hierarchy;

		if (controller == SAMPLER_HIERARCHY_V2 || !str_u64(str_cut(&line, '\t'), &hierarchy) ||
		    hierarchy == 0)
			continue;
		if (best == SAMPLER_HIERARCHY_V2 || controller < best)
			best = controller;
	}
	return best;
}

uint32_t hierarchy_of_containers(void)
{
	struct buf text = BUF_NULL;
	uint32_t hierarchy = SAMPLER_HIERARCHY_V2;

	if (file_read(AT_FDCWD, "/proc/cgroups", &text, 65536) == 0)
		hierarchy = hierarchy_of_text(buf_str(&text));
	buf_free(&text);
	return hierarchy;
}

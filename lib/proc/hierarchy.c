/* SPDX-License-Identifier: Apache-2.0 */
/* The hierarchy that holds containers. Contract in hierarchy.h. */
#include "proc/hierarchy.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <fcntl.h>

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
	} known[] = {{"memory", CGROUP_HIERARCHY_MEMORY},
		     {"cpu", CGROUP_HIERARCHY_CPU},
		     {"pids", CGROUP_HIERARCHY_PIDS}};
	uint32_t best = CGROUP_HIERARCHY_V2;

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

uint32_t proc_hierarchy_here(void)
{
	_cleanup_(buf_free) struct buf text = BUF_NULL;

	/* Unreadable means no v1 controllers: the file is made by their code. */
	return file_read(AT_FDCWD, "/proc/cgroups", &text, 65536) == 0
		       ? proc_hierarchy(buf_str(&text))
		       : CGROUP_HIERARCHY_V2;
}

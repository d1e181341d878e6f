/* SPDX-License-Identifier: Apache-2.0 */
/* The files that patterns of paths stand for. What is looked at is bounded, since a pattern may
 * name a whole disk. */
#pragma once

#include "discovery/path-pattern.h"

#include <stdatomic.h>
#include <stdint.h>

#define PATH_SEARCH_FILES   10000
#define PATH_SEARCH_ENTRIES 1000000 /* of folders, and paths that a pattern names */
#define PATH_SEARCH_DEPTH   100     /* of folders below each other, for a ** */

struct path_search {
	const struct path_pattern *exclude; /* files that it matches are left out; or NULL */
	int64_t not_before_ns;              /* when they were changed at the earliest, UNIX time */
	atomic_bool stop;                   /* another thread's to set: the rest is left */
	bool cut;                           /* there are more entries than the limit */
	int failed;                         /* errno of a folder that could not be read, or 0 */
	size_t entries;                     /* that were looked at in all runs */
	size_t unreadable;                  /* folders that this process may not read */
	size_t left_out;                    /* files beyond the limit of all runs */
	VEC(char *) found;                  /* of the last run: each once, sorted, absolute */
	size_t n_sorted;                    /* of these, at the begin, while it runs */
	size_t n_before;                    /* found by the runs before it */
};

/* Finds all files that match; folders are none. Links to folders are followed, save by `**`. 0 or
 * -ENOMEM. Blocks; to be freed after either. */
int path_search_run(struct path_search *s, const struct path_pattern *p);
void path_search_free(struct path_search *s);

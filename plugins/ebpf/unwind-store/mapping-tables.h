/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What processes have mapped, as the walker reads it: a view is the mappings of one process or
 * of many that have the same (children that were only forked), with the id by which the cache of
 * rows knows them.
 *
 * A view keeps its id while it only gains: mappings where there were none, tables of files that had
 * none. Anything else is a new id. One that is given back may still be in the cache, so it is
 * given again only after the cache has been cleared of it, many at a time.
 */
#ifndef EBPF_UNWIND_STORE_MAPPING_TABLES_H
#define EBPF_UNWIND_STORE_MAPPING_TABLES_H

#include "ebpf/unwind-store/file-tables.h"
#include "ebpf/processes/maps.h"

#include "base/index.h"

/* A mapping as it is; how it is walked is its file's. */
struct view_source {
	uint64_t start, limit;
	uint64_t address;  /* the file's, at start */
	struct file *file; /* NULL: walked as `kind` says */
	uint64_t kind;
};

struct view {
	uint64_t hash; /* of the sources */
	uint32_t position;
	uint32_t n_refs;
	uint32_t chunk, n; /* what the walker reads, and how many mappings; 0: there was no room */
	uint16_t id;
	VEC(struct view_source) sources;
};

struct view_entry {
	uint64_t start;
	struct unwind_mapping mapping;
};

#define VIEW_IDS 65536u

struct views {
	struct files *files;
	struct slabs *slabs;
	struct unwind_set *rows;
	struct unwind_chain *chains;
	VEC(struct view *) all;
	struct index index;
	VEC(struct view_source) scratch; /* of the set that is being looked at */
	VEC(struct view_entry) entries;  /* of the chunk that is being made */
	uint64_t taken[VIEW_IDS / 64];   /* ids that are not free */
	uint64_t left[VIEW_IDS / 64];    /* given back since the last reclaim */
	uint64_t stale[VIEW_IDS / 64];   /* only the cache knows them */
	uint32_t n_taken, n_left, n_stale, last_id;
	uint64_t n_cut;
};

/* All borrowed. *t is zero. */
void views_init(struct views *t, struct files *files, struct unwind_set *rows, struct unwind_chain *chains);
void views_fini(struct views *t);

/*
 * The view of a process that had `former` (NULL: none) and has now what `set` says, with a new
 * reference: the same one, changed or not; one that another process has; or a new one. Who
 * shows it gives `former` up after that. -ENOMEM: nothing has changed. Where there is no room for
 * its chunk the view has none until views_retry.
 */
int views_get(struct views *t, struct view *former, const struct mapset *set, struct view **ret);
void view_release(struct views *t, struct view *v);

/* What the walker is to read: unwind_space_word; 0 where there was no room. */
uint64_t view_word(const struct view *v);

/* Makes the views anew that have a file that has changed. What words said before is retired. */
void views_show(struct views *t);
/* Lets no new walk find the file's table: in place, or by giving up the chunk. */
void views_hide(struct views *t, const struct file *f);
/* Tries again where there was no room. */
void views_retry(struct views *t);

/* No program runs that has seen what was given back. */
void views_reclaim(struct views *t);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Mapping tables: the mappings of one process as the walker reads them. Processes with the same
 * mappings (forked children) share one. The cache of rows knows a table by its id.
 *
 * A table keeps its id while it only gains mappings or file tables; any other change takes a new
 * id. A returned id may still be in the cache. It is reused after the cache has been cleared of it,
 * many at a time. */
#pragma once

#include "ebpf/unwind-store/file-tables.h"
#include "ebpf/processes/maps.h"

#include "base/index.h"

/* A mapping as it is; how it is walked is its file's. */
struct mapping_table_source {
	uint64_t start, limit;
	uint64_t address;  /* the file's, at start */
	struct file *file; /* NULL: walked as `kind` says */
	uint64_t kind;
	uint64_t slot; /* of the runtime that claims the addresses; 0: none */
};

struct mapping_table {
	uint64_t hash; /* of the sources */
	uint32_t position;
	uint32_t n_refs;
	uint32_t chunk, n; /* what the walker reads, and how many mappings; 0: there was no room */
	uint16_t id;
	VEC(struct mapping_table_source) sources;
};

struct mapping_table_entry {
	uint64_t start;
	struct unwind_mapping mapping;
};

#define MAPPING_TABLE_IDS 65536u

struct mapping_tables {
	struct files *files;
	struct slabs *slabs;
	struct unwind_set *rows;
	struct unwind_chain *chains;
	VEC(struct mapping_table *) all;
	struct index index;
	VEC(struct mapping_table_source) scratch; /* of the set that is being looked at */
	VEC(struct mapping_table_entry) entries;  /* of the chunk that is being made */
	uint64_t taken[MAPPING_TABLE_IDS / 64];   /* ids that are not free */
	uint64_t retired[MAPPING_TABLE_IDS / 64]; /* given back since the last reclaim */
	uint64_t cached[MAPPING_TABLE_IDS / 64];  /* only the cache knows them */
	uint32_t n_taken, n_retired, n_cached, last_id;
	uint64_t n_cut;
};

/* All borrowed. *t is zero. */
void mapping_tables_init(struct mapping_tables *t, struct files *files, struct unwind_set *rows,
			 struct unwind_chain *chains);
void mapping_tables_fini(struct mapping_tables *t);

/* The mapping table of a process that had `former` (NULL: none) and has now what `set` says, with a
 * new reference: the same one, changed or not; one that another process has; or a new one. Who
 * shows it gives `former` up after that. -ENOMEM: nothing has changed. Where there is no room for
 * its chunk the table has none until mapping_tables_retry. */
int mapping_tables_get(struct mapping_tables *t, struct mapping_table *former,
		       const struct mapset *set, struct mapping_table **ret);
void mapping_table_release(struct mapping_tables *t, struct mapping_table *v);

/* What the walker is to read: unwind_space_word; 0 where there was no room. */
uint64_t mapping_table_word(const struct mapping_table *v);

/* Rebuilds the tables that have a changed file, and retires their former chunks. */
void mapping_tables_show(struct mapping_tables *t);
/* Lets no new walk find the file's table: in place, or by giving up the chunk. */
void mapping_tables_hide(struct mapping_tables *t, const struct file *f);
/* Tries again where there was no room. */
void mapping_tables_retry(struct mapping_tables *t);

/* No program runs that has seen what was given back. */
void mapping_tables_reclaim(struct mapping_tables *t);

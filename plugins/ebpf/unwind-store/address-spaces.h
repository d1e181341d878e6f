/* SPDX-License-Identifier: Apache-2.0 */
/* Address spaces: the walker's table from a process to its mapping table. It holds 8,192. When a
 * process finds no slot, the one sampled longest ago among its possible slots is replaced. Beyond
 * 8,192 many are replaced at once: a slot is free only when no program can still read it.
 *
 * An entry's word is written last on insertion, first on removal, and in one store between. */
#pragma once

#include "bpfwire/sampler.h"
#include "ebpf/unwind-store/mapping-tables.h"

struct address_slot {
	struct mapping_table *table; /* NULL: free, or retired */
	uint64_t stamp;              /* higher: mapped or sampled later */
	bool retired;                /* since the last reclaim */
};

struct address_spaces {
	struct unwind_space *entries; /* the walker's */
	struct mapping_tables *mapping_tables;
	const struct files_host *host;
	struct address_slot slots[UNWIND_SPACES];
	uint32_t n, n_retired;
	uint64_t clock;
	uint64_t n_replaced;
	VEC(uint64_t) stamps; /* scratch */
};

/* All borrowed. *t is zero: it is larger than a worker's stack, and most of it is never touched. */
void address_spaces_init(struct address_spaces *t, struct unwind_space *entries,
			 struct mapping_tables *mapping_tables, const struct files_host *host);
/* Empties the table. */
void address_spaces_fini(struct address_spaces *t);

/* The process's mapping table; NULL where it has no slot. O(1). */
struct mapping_table *address_spaces_table(const struct address_spaces *t,
					   const struct sampler_process_key *key);
bool address_spaces_has(const struct address_spaces *t, const struct sampler_process_key *key,
			uint64_t generation);

/* Gives the process a mapping table, with its reference; the one that it had is not released.
 * -ENOSPC: no slot can be freed; the reference is the caller's then. */
int address_spaces_set(struct address_spaces *t, const struct sampler_process_key *key,
		       uint64_t generation, uint32_t exec_pages, struct mapping_table *v);
/* The process is gone, if it was there. O(1). */
void address_spaces_remove(struct address_spaces *t, const struct sampler_process_key *key);

/* Shows the walker the mapping tables as they are now. O(slots). */
void address_spaces_refresh(struct address_spaces *t);
/* The process was sampled, if it is there. O(1). */
void address_spaces_touch(struct address_spaces *t, const struct sampler_process_key *key);
/* No program runs that has seen what was given back. */
void address_spaces_reclaim(struct address_spaces *t);

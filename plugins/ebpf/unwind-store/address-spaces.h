/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walker's table of address spaces: which view a process has. 8,192 find their places in it; when one
 * does not, the one goes that was not sampled for longest in those that it may have. Where there are more, many
 * go at once, because a place is free for another process only when no program can still be reading it.
 *
 * An entry's word is written last when it comes, first when it goes, and in one store in between.
 */
#ifndef EBPF_UNWIND_STORE_ADDRESS_SPACES_H
#define EBPF_UNWIND_STORE_ADDRESS_SPACES_H

#include "bpfwire/sampler.h"
#include "ebpf/unwind-store/mapping-tables.h"

struct seat {
	struct view *view; /* NULL: free, or left */
	uint64_t stamp;    /* higher: mapped or sampled later */
	bool left;         /* since the last reclaim */
};

struct spaces {
	struct unwind_space *entries; /* the walker's */
	struct views *views;
	const struct files_host *host;
	struct seat seats[UNWIND_SPACES];
	uint32_t n, n_left;
	uint64_t clock;
	uint64_t n_replaced;
	VEC(uint64_t) stamps; /* scratch */
};

/* All borrowed. *t is zero: it is larger than a worker's stack, and most of it is never touched. */
void spaces_init(struct spaces *t, struct unwind_space *entries, struct views *views,
		 const struct files_host *host);
/* Empties the table. */
void spaces_fini(struct spaces *t);

/* The process's view; NULL where it has no place. O(1). */
struct view *spaces_view(const struct spaces *t, const struct sampler_process_key *key);
bool spaces_has(const struct spaces *t, const struct sampler_process_key *key, uint64_t generation);

/* Gives the process a view, with its reference; the one that it had is not released. -ENOSPC:
 * no place can be made; the reference is the caller's then. */
int spaces_set(struct spaces *t, const struct sampler_process_key *key, uint64_t generation,
	       uint32_t exec_pages, struct view *v);
/* The process is gone, if it was there. O(1). */
void spaces_remove(struct spaces *t, const struct sampler_process_key *key);

/* Lets the walker see what views say now. O(places). */
void spaces_refresh(struct spaces *t);
/* The process was sampled, if it is there. O(1). */
void spaces_touch(struct spaces *t, const struct sampler_process_key *key);
/* No program runs that has seen what was given back. */
void spaces_reclaim(struct spaces *t);

#endif

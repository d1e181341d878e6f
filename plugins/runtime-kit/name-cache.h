/* SPDX-License-Identifier: Apache-2.0 */
/* Names of functions by the ids that stand in stacks. They outlive their processes.
 *
 * The bound is of all bytes that the cache holds: ids, tables of slots, texts and what malloc adds.
 * Equal names of many ids are kept once. The id that was not used for the longest time leaves
 * first, roughly (a clock). A process with more than its share loses names before others do, and
 * for its own. Hashes are keyed, so that chosen names or ids do not collide.
 *
 * Functions may be called from any thread: each takes the cache's lock, for less than a microsecond
 * as a rule. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NAME_CACHE_PINS  256u /* names that may be in use at once */
#define NAME_CACHE_SHARE 4u   /* a process's is so much of all bytes */
#define NAME_TEXT_MAX    (64u << 10)
#define NAME_TABLE_MAX   (4u << 20)

struct name {
	const char *function, *file; /* UTF-8; not terminated */
	uint32_t n_function, n_file;
	uint32_t first_line;
	uint32_t kind;              /* the plugin's own, as how the table is written */
	uint64_t extra;             /* the plugin's own */
	uint64_t owner;             /* the process, as its pid; 0: nobody's, without a share */
	const unsigned char *table; /* the plugin's own: its line table */
	uint32_t n_table;
};

struct name_cache;

/* At most `max` bytes, which is at least 64 KiB. NULL: no memory. */
struct name_cache *name_cache_new(size_t max);
/* NULL is accepted. No name of it is in use. */
void name_cache_free(struct name_cache *c);

/* Keeps a copy of a name under an id, which is not 0, in place of what it had. 0; -ENOMEM;
 * -EINVAL: an id of 0, no function, or too long; -ENOSPC: name_cache_excess() has not been called
 * until it had no more. */
int name_cache_put(struct name_cache *c, uint64_t id, const struct name *name);

/* An id that has had to leave, of which the BPF program is to be told to report it again; 0: no
 * more. Until then after each put. */
uint64_t name_cache_excess(struct name_cache *c);

/* Names that were found before are not used any more. At the beginning of each `resolve`. */
void name_cache_begin(struct name_cache *c);

/* The name of an id, which lasts until name_cache_begin(), whatever leaves the cache. false: it is
 * not known, or too many are in use. */
bool name_cache_find(struct name_cache *c, uint64_t id, struct name *ret);

struct name_cache_counts {
	uint64_t bytes, n_names, n_evicted;
};

struct name_cache_counts name_cache_counts(struct name_cache *c);

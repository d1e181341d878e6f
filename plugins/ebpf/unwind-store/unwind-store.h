/* SPDX-License-Identifier: Apache-2.0 */
/* The unwind store: tables of all files that sampled processes map, and where each process maps
 * them (bpfwire/unwind-tables.h), within a budget.
 *
 *   mapset (processes/maps.h: a process's mappings, as read) -> address space
 *     -> mapping table (shared by forks) -> file (shared by all) -> rules
 *
 * A file is read once. It stays until memory is needed or nobody has mapped it for long. The least
 * recently sampled goes first; one sampled in this interval or the last never goes. What does not
 * fit is unwound by frame pointers and counted. A file too large for the rest has only the pages in
 * which samples fall.
 *
 * What a running program may still read is freed when `quiesce` has returned, all at once. One
 * thread at a time, any thread. Nothing here fails a sample: short memory or budget ends stacks
 * early, and the statistics say so. */
#pragma once

#include "ebpf/processes/mapped-file.h"
#include "ebpf/processes/maps.h"
#include "bpfwire/sampler.h"
#include "ebpf/unwind-store/file-reader.h"
#include "ebpf/unwind-store/slab-allocator.h"
#include "bpfwire/unwind-tables.h"

struct unwind;

/* The kernel's maps, as memory, and what only the kernel can do. Borrowed, as long as the store
 * lives. */
struct unwind_kernel {
	struct slabs_kernel slabs;
	struct unwind_entry *rules;  /* UNWIND_RULES_MAX + 1, zero */
	struct unwind_space *spaces; /* UNWIND_SPACES, zero */
	struct unwind_set *rows;     /* UNWIND_SETS, zero */
	struct unwind_chain *chains; /* UNWIND_CHAINS, zero */
	/* Returns when no program runs any more that ran when it was called. 0 or a negative errno,
	 * after which nothing is freed until the next time. */
	int (*quiesce)(void *context);
	void *context;
};

struct unwind_options {
	uint64_t budget_bytes; /* of all slabs; what the agent may have, less its other maps */
	unwind_read_fn read;
	void *read_context;
};

/* NULL when memory is short. */
struct unwind *unwind_new(const struct unwind_kernel *kernel, const struct unwind_options *options);
/* The programs must not run any more. Releases all mapped files. */
void unwind_free(struct unwind *u);

/* Takes what a process has mapped from now on. 1: it maps files that nobody has read, which are
 * read now (~10 million rows a second); call it again when unwind_take has returned true. Until
 * then the walker knows of the process what it knew before: a stack of one that is unknown can be
 * completed later, one that ends where there is no table yet cannot. `generation` is
 * unwind_generation's for the process as it is now. `set` is borrowed, its older ones are not used;
 * files are retained as needed. 0; -ENOMEM; -ENOSPC: the kernel does not let us wait for its
 * programs, so no slot can be given to it. On failure all is as before. */
int unwind_map(struct unwind *u, const struct sampler_process_key *key, uint64_t generation,
	       const struct mapset *set);

/* Whether files are being read; and a descriptor that is readable when unwind_take has work. */
bool unwind_reading(const struct unwind *u);
/* How many tables it has made. */
uint64_t unwind_made(const struct unwind *u);
int unwind_fd(const struct unwind *u);
/* Puts what was read into tables, and shows those that are whole: true if there are any. */
bool unwind_take(struct unwind *u);
/* The same until nothing is being read. */
void unwind_wait(struct unwind *u);

/* The process is gone. It need not have an address space. O(1). */
void unwind_unmap(struct unwind *u, const struct sampler_process_key *key);

/* The process was sampled: others are replaced before it. O(1). */
void unwind_touch(struct unwind *u, const struct sampler_process_key *key);

/* Whether a process has an address space, with this generation; and its word, 0 where it has none
 * or there was no room for it. O(1). */
bool unwind_knows(const struct unwind *u, const struct sampler_process_key *key,
		  uint64_t generation);
uint64_t unwind_word(const struct unwind *u, const struct sampler_process_key *key,
		     uint64_t generation);

/* A slab as the walker sees it, for walking natively; NULL where there is none. Holds while no
 * other function is called, and for the SLABS_MAPPED slabs that were asked for last. */
const uint8_t *unwind_slab(struct unwind *u, uint32_t number);

#define UNWIND_CLAIMS_MAX 1024u

/* Says what of a file runtimes walk from now on, wherever it is mapped, in place of what was said
 * before; n 0: nothing. Ascending, and apart from each other. A file with claims is not forgotten.
 * 0; -EINVAL: they are not so, or too many; -ENOMEM: as before. O(mapping tables). */
int unwind_claim(struct unwind *u, struct mapped_file *mapped, const struct code_claim *claims,
		 size_t n);

/* A frame of a delivered stack lies at this address of the file's own (mapped_file_address): keeps
 * the file, and wants back what of it has been left out or evicted. O(1) for a file that is whole.
 */
void unwind_used(struct unwind *u, const struct mapped_file *mapped, uint64_t address);

/* A frame of this file, or of the vDSO where it is NULL, stands in a stack that ended because a
 * register was lost that a caller's rule needs: from the next unwind_tick on its table has
 * auxiliary words, which say where its functions have saved it. O(1). */
void unwind_want_registers(struct unwind *u, const struct mapped_file *mapped);

/* Ends an interval: has read what was requested, ages files and address spaces, frees behind one
 * quiesce what has been given up. Some 10 µs for every thousand address spaces. */
void unwind_tick(struct unwind *u);

/* Why a file has no table and is walked by frame pointers. */
#define UNWIND_REFUSED_NO_ROWS    0 /* it describes nothing */
#define UNWIND_REFUSED_NOT_ELF    1
#define UNWIND_REFUSED_UNREADABLE 2 /* it cannot be opened or read any more */
#define UNWIND_REFUSED_TOO_LARGE  3 /* more functions or text than is read */
#define UNWIND_REFUSALS           4

struct unwind_stats {
	/* As it is. */
	uint64_t files;     /* with a table, or refused */
	uint64_t tables;    /* files with a table */
	uint64_t aux;       /* of these, with auxiliary words */
	uint64_t aux_asked; /* of these, because a stack needed them, not a rule of their own */
	uint64_t degraded;  /* files of which only pages that were hit have rows */
	uint64_t refused[UNWIND_REFUSALS];
	uint64_t rows;  /* in tables */
	uint64_t bytes; /* of pages and of the lists of pages */
	uint64_t slabs, slab_bytes;
	uint64_t rules;
	uint64_t address_spaces, mapping_tables, mappings;
	/* Since the beginning. */
	uint64_t read_ns;                 /* how long files were read */
	uint64_t rows_lost;               /* a page's 256 rules or the rules' numbers ran out */
	uint64_t evictions;               /* files whose table made room */
	uint64_t address_spaces_replaced; /* there was no room for one more */
	uint64_t mappings_cut;            /* a process had more than UNWIND_MAPPINGS_MAX */
	uint64_t quiesces;
	uint64_t no_memory; /* of our own */
};

void unwind_get_stats(const struct unwind *u, struct unwind_stats *ret);

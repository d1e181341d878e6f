/* SPDX-License-Identifier: Apache-2.0 */
/* File tables: pages of rows in slabs, and the list of these pages. Each file has one table,
 * however many processes map it. A table is whole; or partial, where the budget has no room: then
 * it has the pages that were hit, and "by frame pointers" in place of the others. Under pressure
 * the table hit longest ago goes first, several at once, since each time costs a quiesce. */
#pragma once

#include "ebpf/processes/mapped-file.h"
#include "ebpf/unwind-store/file-reader.h"
#include "ebpf/unwind-store/rule-table.h"
#include "ebpf/unwind-store/slab-allocator.h"
#include "ebpf/unwind-store/unwind-store.h"

#include "base/vec.h"

#define FILE_UNREAD  0 /* nothing is known yet */
#define FILE_WHOLE   1
#define FILE_PARTIAL 2 /* what was hit, if anything; the rest by frame pointers */
#define FILE_EVICTED 3 /* made room; read again when it is hit */
#define FILE_REFUSED 4 /* by frame pointers */

struct file_page {
	uint32_t number, ref, n;
};

struct file_table {
	uint64_t base;      /* the file's address where page 0 begins */
	uint32_t n_pages;   /* of the list */
	uint32_t directory; /* the list; 0: there is none */
	VEC(struct file_page) pages;
	VEC(uint16_t) rules; /* each retained once */
	uint64_t rows, bytes;
	bool aux; /* any rule has an auxiliary word, or all have because they were requested */
};

struct file {
	struct mapped_file *mapped; /* retained; NULL: the vDSO */
	uint32_t position;
	uint32_t state, refusal;
	uint32_t n_users; /* mappings of mapping tables */
	struct file_table table;
	struct file_table former; /* until files_settle */
	uint64_t need;            /* bytes of pages that it would have if it were whole */

	uint64_t hit;            /* interval in which it was hit last, 0: never */
	uint64_t used;           /* interval in which it was hit or made last */
	uint64_t seen;           /* interval in which it was mapped last */
	uint64_t made;           /* counts tables: which is older */
	uint64_t retry;          /* interval before which it is not read again */
	uint32_t backoff;        /* intervals until then, the next time */
	VEC(uint64_t) requested; /* ascending, addresses by 64 KiB */
	bool pending;            /* asked of the reader, and not ended */
	bool requested_more;     /* more is requested than when it was read */
	bool want_aux;           /* auxiliary words are, though no rule of its own needs them */
	VEC(struct code_claim) claims; /* ascending, apart from each other */
	bool changed;                  /* mapping tables show its former state */
	bool other;                    /* addresses that had a rule may have another */
};

#define FILES_FRAMES_BYTES 16

struct files_host {
	void *context;
	/* Frees what was retired, in all of the store. 0 or a negative errno. */
	int (*reclaim)(void *context);
	/* Lets no new walk find this file's table. Never fails. */
	void (*hide)(void *context, const struct file *f);
};

/* A table that is being made of pages as they come. */
struct build {
	struct files *t;
	struct file *f;
	struct file_table fresh;
	VEC(uint32_t) refs; /* what becomes the list of pages */
	size_t n_kept;      /* pages of the former table */
	uint64_t need, lost;
	int result;      /* a negative errno: the rest of the pages is not looked at */
	uint16_t before; /* how the file was walked until now */
	bool partial;    /* only what is requested */
	bool full;       /* the budget has ended */
	bool starved;    /* so have the numbers of rules */
};

struct files {
	struct files_host host;
	struct slabs *slabs;
	struct rule_table *rules;
	struct file_reader *reader;
	VEC(struct file *) all;
	size_t n_pending; /* files that are */
	struct file *vdso;
	struct file *busy;                            /* whose table is being made; NULL: none */
	struct build build;                           /* of that file */
	uint64_t known[(UNWIND_RULES_MAX + 64) / 64]; /* numbers that the table being made has */
	uint32_t frames_page;                         /* by frame pointers; 0: not made yet */
	uint16_t frames_rule;
	uint64_t now; /* number of the interval, from 2 on */
	uint64_t n_made, n_read, read_ns, n_lost, n_evictions, n_no_memory;
};

/* All borrowed. 0 or -ENOMEM. */
int files_init(struct files *t, const struct files_host *host, struct slabs *slabs,
	       struct rule_table *rules, const struct unwind_options *options);
/* Nobody may use a file any more. */
void files_fini(struct files *t);

/* The file of a mapped one, of the vDSO if NULL; unread if it is new. NULL when memory is short. */
struct file *files_get(struct files *t, struct mapped_file *mapped);

/* How its mappings are walked now: UNWIND_KIND_*. */
uint16_t file_kind(const struct file *f);

/* Has the file read (again), by the reader's thread, unless that is under way; `mode` 0. 0; or
 * -ENOMEM, -EAGAIN: in the next interval. */
int files_request(struct files *t, struct file *f, uint32_t mode);
/* Puts what was read until now into tables; true where files have ended. Their `changed` and
 * `other` say what that means to mapping tables. */
bool files_take(struct files *t);
/* What runtimes walk of it, from now on. 0 or -ENOMEM, as before then. */
int file_claim(struct file *f, const struct code_claim *claims, size_t n);

/* All mapping tables show the file as it is: retires what was replaced. */
void files_settle(struct files *t, struct file *f);

/* Gives back what was made of a table that nobody has seen; pages kept from the former one stay. */
void build_drop(struct build *b);

/* Whether it is time to read the file (again). */
bool files_is_due(const struct files *t, const struct file *f);

/* Evicts a share of all that is not hit, for its rules. False if nothing was freed. */
bool files_make_room(struct files *t);

/* Bytes that there would be if all went that may. O(files). */
uint64_t files_room(const struct files *t);

/* Whether a partial table should have the page of an address. */
bool file_wants(const struct file *f, uint64_t address);

/* It was hit, there. */
void files_hit(struct files *t, struct file *f, uint64_t address);

/* Begins an interval: forgets files that nobody has mapped for long. */
void files_age(struct files *t);

/* A chunk, if need be by eviction. -ENOSPC, -ENOMEM. */
int files_alloc(struct files *t, size_t n, uint32_t *ret_ref);

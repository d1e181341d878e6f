/* SPDX-License-Identifier: Apache-2.0 */
/* A store of unwind tables over a kernel of plain memory, with invented files: row i of a file is
 * at first + i * step, and its rule says so. */
#pragma once

#include "ebpf/tests/test-kernel.h"
#include "ebpf/unwind-store/unwind-store.h"

#define WORLD_FILES 400

struct world_file {
	struct mapped_file *file;
	uint64_t first, step;
	uint32_t n;       /* rows */
	uint32_t n_rules; /* that they go through; 0: a rule for each row */
	uint32_t salt;    /* which these are */
	bool aux;
	int error; /* instead of rows */
	uint32_t n_read;
};

struct world {
	struct test_kernel kernel;
	struct mapped_files *mapped_files;
	struct unwind *store;
	struct world_file files[WORLD_FILES];
	uint64_t n_interned, n_released;
};

/* Without files. 0 or -ENOMEM. */
int world_init(struct world *w, uint64_t budget_bytes);
void world_fini(struct world *w);

/* File `number`, whose rows begin at `first`, every `step` bytes. 0 or -ENOMEM. */
int world_file(struct world *w, uint32_t number, uint64_t first, uint64_t step, uint32_t n);

/* The rule of a file at an address; all zero where there is none. */
struct unwind_entry world_entry(const struct world *w, uint32_t number, uint64_t address);

struct sampler_process_key world_key(uint32_t tgid);

/* Adds a mapping of a file (or of WORLD_ANON, WORLD_VDSO) to a set; false when memory is short. */
#define WORLD_ANON UINT32_MAX
#define WORLD_VDSO (UINT32_MAX - 1)
bool world_add(struct world *w, struct mapset *set, uint32_t number, uint64_t start, uint64_t bytes,
	       uint64_t offset);

/* unwind_map, its files read. */
int world_map_layout(struct world *w, const struct sampler_process_key *key, uint64_t layout,
		     const struct mapset *set);
/* unwind_tick, and what it reads. */
void world_tick(struct world *w);
/* unwind_map for the process of that tgid, and its word; its generation is 1. */
int world_map(struct world *w, uint32_t tgid, const struct mapset *set);
uint64_t world_word(const struct world *w, uint32_t tgid);

struct world *world_new(uint64_t budget_bytes);
void world_free(struct world *w);
struct mapset *world_set(void);

/* A process with one mapping alone. */
void world_map_one(struct world *w, uint32_t tgid, uint32_t number, uint64_t start, uint64_t bytes,
		   uint64_t offset);
/* Files [from, to) of 125 KB of table each, each in a process of its own at WORLD_TEXT. */
#define WORLD_TEXT UINT64_C(0x7f0000000000)
void world_fill(struct world *w, uint32_t from, uint32_t to);

/* What is found; there must be a mapping. */
struct unwind_found world_find(struct world *w, uint32_t tgid, uint64_t pc);
/* The mapping has the file's rows, at many addresses. */
void world_expect_rows(struct world *w, uint32_t tgid, uint32_t number, uint64_t start,
		       uint64_t bytes, uint64_t offset);
struct unwind_stats world_stats(const struct world *w);
uint32_t world_id(const struct world *w, uint32_t tgid);

/* The rule that a program applies at `pc`: from the cache of rows, else found and remembered there;
 * 0 where it ends. */
uint64_t world_step(struct world *w, uint64_t word, uint64_t pc);

/* By frame pointers. */
uint64_t world_by_frames(void);

/* SPDX-License-Identifier: Apache-2.0 */
/* What was read of the functions, scripts and compiled code of all processes: a cache. It is filled
 * while a process lives, and asked when it may be gone. Entries refer to each other by id, and any
 * of them may be absent: what was used least recently goes when NAMES_BYTES are full. A process
 * with more than its share loses its entries before others do, and for its own.
 *
 * No locks: callers share one for a cache. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "v8/code/code.h"
#include "v8/lines.h"
#include "v8/shared.h"

#define NAMES_BYTES   (8u << 20)
#define NAMES_BUCKETS 8192u
#define NAMES_CODES   32768u
#define NAMES_SHARE   (NAMES_BYTES / 4) /* of a process */
#define NAMES_OWNERS  256u              /* lists of entries: processes share them */
#define NAMES_MOVES   6u                /* of a code's objects, that are remembered */

struct names_entry {
	struct names_entry *next; /* in its bucket */
	struct {
		struct names_entry *newer, *older;
	} in[2]; /* lists by last use: of all, and of its owner */
	uint64_t id, process_id;
	uint32_t bytes; /* with all that it owns */
	enum { NAMES_FUNCTION, NAMES_SCRIPT, NAMES_CODE } kind;
};

struct names_list {
	struct names_entry *newest, *oldest;
	uint64_t bytes; /* of an owner */
};

struct names_function {
	struct names_entry entry; /* by the function's id */
	struct v8_key key;
	uint64_t script;    /* its id; 0: none */
	int32_t start, end; /* in the script; -1: not known */
	uint64_t bytecodes; /* whose `positions` are */
	uint8_t *positions;
	uint32_t n_positions;
	char *name; /* "": none */
};

struct names_script {
	struct names_entry entry; /* by names_script_id() */
	char *name;
	int32_t line_offset;
	uint32_t n_torn;  /* how often its name or its source could not be read, … */
	uint64_t torn_ns; /* … and when last */
	struct lines lines;
};

struct names_code {
	struct names_entry entry; /* by its header's address and its process */
	uint64_t process_id;
	struct code code;
	/* The same code's compilations before the collector moved what it has, the last one first.
	 * Samples wait up to an interval for their names. */
	uint16_t moved[NAMES_MOVES];
	bool replaced;   /* other code was at these addresses before */
	uint32_t n_torn; /* how often not all of it could be read */
};

struct names {
	struct names_entry *buckets[NAMES_BUCKETS];
	struct names_list all, owners[NAMES_OWNERS];
	struct names_code **codes; /* ascending by process and address */
	uint32_t n_codes, max_codes;
	uint64_t bytes;     /* of all entries, and of this */
	uint64_t n_evicted; /* ever */
};

/* NULL: no memory. */
struct names *names_new(void);
void names_free(struct names *n);

/* An entry that is found was used. NULL: there is none. It lasts until the next names_put_…(). */
struct names_function *names_function(struct names *n, uint64_t id);
struct names_script *names_script(struct names *n, uint64_t id);
/* The code around an address. */
struct names_code *names_code(struct names *n, uint64_t process_id, uint64_t pc);
/* Whether it is the code that had this compilation (shared.h), which is not 0. */
bool names_code_has(const struct names_code *c, uint64_t compilation);

uint64_t names_script_id(uint64_t seed, uint64_t address, uint64_t number);

/* Adds an entry, whose owner is now the cache, in place of what has its id. Members of `entry`
 * other than the ids are set here. Without memory, or if it is too large, it is freed. */
void names_put_function(struct names *n, struct names_function *f);
void names_put_script(struct names *n, struct names_script *s);
/* … and in place of all code at its addresses. */
void names_put_code(struct names *n, struct names_code *c);

/* For entries that were never put. */
void names_function_free(struct names_function *f);
void names_script_free(struct names_script *s);
void names_code_free(struct names_code *c);

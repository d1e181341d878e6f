/* SPDX-License-Identifier: Apache-2.0 */
/* What the functions of a process are called, and where their code came from in its scripts. Read
 * while the process lives, as soon as a walk has met a function or compiled code; asked for later,
 * when it may be gone.
 *
 * Bounded: a process that has more than its share of bytes learns nothing new. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "code.h"
#include "v8-heap.h"
#include "shared.h"

#define NAMES_BYTES  (8u << 20) /* of one process */
#define NAMES_FRAMES 64u

struct names_script {
	uint64_t address, id;
	char *name;
	int32_t line_offset;
	uint32_t *ends, n_ends, characters;
};

struct names_function {
	struct v8_key key;
	char *name;
	int32_t script; /* -1: none */
	int32_t start, end;
	uint64_t bytecodes;
	uint8_t *positions; /* of its bytecodes */
	uint32_t n_positions;
	bool valid; /* what was read is a function */
};

struct names {
	struct v8_memory memory;
	const struct v8_binary *binary;
	struct names_function **functions; /* in a hash by key */
	uint32_t n_functions, max_functions;
	struct names_script *scripts;
	uint32_t n_scripts;
	struct code *codes; /* ascending by address */
	uint32_t n_codes;
	uint64_t bytes;
	uint64_t n_refused; /* for want of room */
	struct v8_range blobs[V8_BLOBS];
};

/* The binary has to outlive it. */
void names_init(struct names *n, const struct v8_memory *memory, const struct v8_binary *binary);
void names_fini(struct names *n);

/* Reads a function that was met, once: -ENOMEM, or 0 and the function, which may be invalid. It is
 * there until names_fini. */
int names_learn(struct names *n, const struct v8_key *key, uint64_t bytecodes,
		struct names_function **ret);

/* Reads the compiled code around pc, unless it is known and still there. */
void names_learn_code(struct names *n, uint64_t pc);

/* One frame. Text lasts as long as the names. */
struct names_frame {
	const char *function, *file;
	uint32_t line, first_line;
};

/* The frames of a pair of words, innermost first; f is the function of its number, or NULL. */
uint32_t names_resolve(struct names *n, struct names_function *f, uint64_t what, uint64_t where,
		       struct names_frame *ret, uint32_t max);

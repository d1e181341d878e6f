/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled code, from an address in it. Nothing on the stack says which code runs: a function's own
 * may have been replaced while it runs, or be entered in a loop's middle. So it is looked for
 * backwards, to where its header stands; the header knows where its instructions begin, which
 * tells it from instructions that look like one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "v8-heap.h"
#include "positions.h"

#define CODE_INLINED 4096u /* functions that one code has inlined, at most */

struct names_function;

enum code_kind {
	CODE_OTHER, /* of a regular expression, Wasm, a stub */
	CODE_BASELINE,
	CODE_OPTIMIZED,
};

struct code_inlined {
	struct position position;        /* of the call */
	uint64_t shared;                 /* of the function; 0: not known */
	struct names_function *function; /* the same, once it has been read (names.h) */
};

struct code {
	uint64_t start, end;
	uint64_t header; /* its object, whose first words tell whether it is still there */
	uint64_t words[4];
	enum code_kind kind;
	uint64_t shared;    /* SharedFunctionInfo; of baseline code 0 */
	uint64_t bytecodes; /* of baseline code */
	uint8_t *positions; /* of optimised code */
	uint32_t n_positions;
	struct code_inlined *inlined;
	uint32_t n_inlined;
	struct baseline_step *steps;
	uint32_t n_steps;
};

/* Finds the code around pc. What could not be read of it is absent. False: there is none. The
 * caller owns what is in *ret. */
bool code_read(const struct heap *h, uint64_t pc, struct code *ret);
void code_fini(struct code *c);

/* Whether the same code is where it was. */
bool code_is_there(const struct heap *h, const struct code *c);

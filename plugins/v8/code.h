/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled code, from an address in it. Nothing on the stack says which code runs: a function's own
 * may have been replaced while it runs, or be entered in a loop's middle. So it is looked for
 * backwards, to where its header stands; the header knows where its instructions begin, which
 * tells it from instructions that look like one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "v8/positions.h"
#include "v8/shared.h"
#include "v8/v8-heap.h"

#define CODE_INLINED 4096u /* functions that one code has inlined, at most */

enum code_kind {
	CODE_OTHER, /* of a regular expression, Wasm, a stub */
	CODE_BASELINE,
	CODE_OPTIMIZED,
};

struct code_inlined {
	struct position position; /* of the call */
	uint64_t shared;          /* of the function; 0: not known */
	uint64_t function;        /* its id, once it has been read (names.h) */
};

struct code {
	uint64_t start, end;
	uint64_t header;      /* its object */
	uint64_t compilation; /* shared.h */
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
bool code_read(const struct heap *h, uint64_t seed, uint64_t pc, struct code *ret);
void code_fini(struct code *c);

/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled code, from an address in it. Nothing on the stack says which code runs: a function's own
 * may have been replaced while it runs, or be entered in a loop's middle. So it is looked for
 * backwards, to where its header stands; the header knows where its instructions begin, which
 * tells it from instructions that look like one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "v8/code/positions.h"
#include "v8/shared.h"
#include "v8/v8-heap.h"

#define CODE_INLINED 4096u /* functions that one code has inlined, at most */
#define CODE_DOUBTS  32u
#define CODE_ASIDES  4096u

enum code_kind {
	CODE_OTHER, /* of a regular expression, a stub */
	CODE_BASELINE,
	CODE_OPTIMIZED,
	CODE_WASM, /* wasm.h */
};

struct code_inlined {
	struct position position; /* of the call */
	uint64_t shared;          /* of the function; 0: not known */
	uint64_t function;        /* its id, once it has been read (names.h) */
	bool is_sure;             /* the position is one that a call inside of it has (calls.c) */
};

/* A call (calls.c): the offset that it returns to, and its places, the outermost first. */
struct code_call {
	uint32_t offset, first, n;
};
struct code_place {
	uint32_t callee; /* a function in `callees` */
	int32_t at;      /* -1: not known */
};
struct code_callee {
	uint64_t shared, function; /* as those of code_inlined */
};
/* A position of a function that `positions` has where it is not so. */
struct code_doubt {
	uint64_t shared;
	int32_t at;
};

/* Code behind the last node, [from, to), which goes back to an offset. */
struct code_aside {
	uint32_t from, to, back;
};

struct code {
	uint64_t start, end;
	uint64_t header;      /* its object */
	uint64_t compilation; /* shared.h */
	enum code_kind kind;
	uint64_t shared;    /* SharedFunctionInfo; of baseline code 0 */
	uint64_t bytecodes; /* of baseline code */
	/* Whose code it is, as v8_key has it: where objects stand changes, these do not. */
	uint64_t script_id;
	uint32_t literal;
	uint8_t *positions; /* of optimised code; of a baseline's bytecodes */
	uint32_t n_positions;
	struct code_inlined *inlined;
	uint32_t n_inlined;
	struct code_call *calls; /* of Maglev's code */
	struct code_place *places;
	struct code_callee *callees;
	struct code_doubt *doubts;
	struct code_aside *asides;
	uint32_t n_calls, n_places, n_callees, n_doubts, n_asides;
	struct baseline_step *steps;
	uint32_t n_steps;
	char *name; /* of Wasm's function */
};

/* Finds the code that a function was seen in. What could not be read of it is absent. False: there
 * is none. The caller owns what is in *ret. */
bool code_read(const struct heap *h, uint64_t seed, const struct v8_sighting *s, struct code *ret);
void code_fini(struct code *c);
/* Of all that it owns. */
size_t code_bytes(const struct code *c);

/* calls.c */
/* Reads the calls of code. Nothing is added to it where they are not as known versions have them,
 * or the code is not Maglev's. */
void calls_read(const struct heap *h, uint64_t deopt, struct code *c);

/* The call that returns to an offset; NULL: there is none. */
const struct code_call *calls_find(const struct code *c, uint32_t offset);

/* The offset that code at an offset belongs to: another one if it stands behind the last node. */
uint32_t calls_belongs(const struct code *c, uint32_t offset);

/* Whether the code's table has given this position of a function to a call somewhere else. */
bool calls_doubt(const struct code *c, uint64_t shared, int32_t at);

/* SPDX-License-Identifier: Apache-2.0 */
/* Unwind rows for x86-64 code that no table describes, made from the code itself: how far each
 * instruction moves the stack pointer, and where the caller's frame pointer is saved. For programs
 * whose C library is built without call-frame information, as musl mostly is, and for functions
 * written in assembler.
 *
 *     code in [start, end)
 *        │ first pass: targets of calls, addresses taken (function-starts.h)
 *        ▼
 *     functions ──▶ for each: passes that propagate stack states along its jumps
 *        ▲             │  a return where the return address is not on top:
 *        └─────────────┘  two functions were taken for one, and are split
 *                      ▼
 *                   rows, one for each instruction
 *
 * A pass is a forward data-flow analysis. A jump gives its target the state of the stack; the first
 * state counts, later ones are ignored. Targets that were already passed are pending, and are
 * followed from there. An instruction that nothing leads to is reached by a jump through a table,
 * and has the state at the table's jump, or another function begins there. A function that clears
 * the frame pointer without having saved it is an outermost frame (System V ABI for AMD64 §3.4.1).
 * Where the stack is aligned, the old stack pointer serves if it was stored, or the frame pointer
 * if it was set from it; else there is no rule.
 *
 * `strict` is for an assembler's functions in a file whose other code is described: neither calls
 * nor symbols lead to most of them. A function then also begins at an aligned address behind the
 * end of something, or behind a call and padding, if no jump leads there, and no short jump skips
 * it. A function gets no rows if it never returns with the return address on top of the stack (nor
 * jumps so to another function), or if it has bytes that are no instruction, as the tables of
 * numbers within libcrypto's code. */
#pragma once

#include "cfi/reduce.h"
#include "codescan/tracked-stack.h"
#include "elf/window.h"

#define CODE_ROWS_MAX    (UINT64_C(8) << 20) /* bytes of code in one range */
#define CODE_ROWS_STATES 4096u               /* jump targets in a function; a power of two */
/* Instructions of a function that nothing leads to. A function with more is not understood, and the
 * next guess would be wrong. */
#define CODE_ROWS_GUESSES 32u
/* Instructions decoded for each byte, over all code so far: C libraries need 0.5 to 3. */
#define CODE_ROWS_WORK        16u
#define CODE_ROWS_WORK_STRICT 4u   /* codecs and libraries need 0.4 to 2 */
#define CODE_ROWS_BEYOND      256u /* function starts in later ranges; the last ones are kept */

/* The state that a jump gave its target. */
struct target_state {
	uint32_t function; /* its number; another: this slot is free */
	uint32_t target;   /* from `start` */
	struct tracked_stack stack;
};

/* Where functions begin: what the first pass finds. The maps share one block of memory. */
struct function_starts {
	uint8_t *known;   /* a bit for each byte: a function begins there */
	uint8_t *aligned; /* for each aligned address: something ended before it */
	uint8_t *targets; /* for each aligned address: a jump leads there, or a short one over it */
	size_t capacity;
	uint64_t beyond[CODE_ROWS_BEYOND]; /* in code that comes later */
	size_t n_beyond;
};

/* The function at hand, through all passes over it. */
struct function_scan {
	uint32_t number;
	uint64_t start, end;
	uint8_t *has_state; /* a bit for each byte: a jump gave it a state */
	uint8_t *pending;   /* for each byte: that state was not followed yet; of the same memory */
	size_t capacity;
	unsigned int guesses;
	uint64_t candidate; /* first address where another function seems to begin; 0: none */
	bool rejected;      /* it gets no rows */
};

/* One pass over the function. */
struct function_pass {
	uint64_t at;      /* the next instruction */
	uint64_t reached; /* the pass has come as far as this */
	bool unreachable; /* no instruction falls through to `at` */
	bool unbalanced;  /* a return does not find the return address */
	bool changed;     /* an address before `reached` got a state */
	bool crossed;     /* a jump leads over function.candidate */
	bool returns;
	bool data; /* it has bytes that are no instruction */
	bool after_call;
	uint64_t aligned;           /* the last aligned address right behind a call; 0: none yet */
	uint64_t lost;              /* the first instruction that nothing leads to; 0: none */
	struct tracked_stack state; /* at `at` */
	struct tracked_stack table; /* at the last jump through a table */
	struct tracked_stack lost_state;
};

struct code_rows {
	/* Set by the caller. */
	bool strict;
	bool absolute;  /* addresses stand in the code as they are: the file is not moved */
	uint64_t entry; /* of the program, or 0 */
	/* The rest is private, but for what tests look at. */
	struct window window;
	uint64_t start, end; /* addresses of the range */
	uint64_t work;       /* instructions decoded so far */
	uint64_t work_max;   /* the rest is given up from here on */
	uint64_t last_split; /* the last start that was found by splitting a function */
	struct function_starts starts;
	struct function_scan function;
	struct function_pass pass;
	struct target_state *states;
};

#define CODE_ROWS_NULL ((struct code_rows){0})

/* Begins with the code at [start, end), which lies at `offset` of the file; may be called again for
 * other code. 0, -E2BIG (more than CODE_ROWS_MAX), -ENOMEM or an errno of a read. Memory: a seventh
 * of the code, a quarter of its largest function, a window, and 150 KiB for states. One pass over
 * the code; later each function is passed over two to four times. Functions that are left when
 * work_max is reached get no rows, so time is linear in the code, whatever it is. */
int code_rows_begin(struct code_rows *c, int fd, uint64_t offset, uint64_t start, uint64_t end);
/* A function begins at an address, from another source. */
void code_rows_mark(struct code_rows *c, uint64_t address);
/* The next piece, ascending: 1, 0 at the end, or an errno. */
int code_rows_next(struct code_rows *c, struct rows_piece *ret);
void code_rows_free(struct code_rows *c);

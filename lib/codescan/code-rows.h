/* SPDX-License-Identifier: Apache-2.0 */
/* Rows for x86-64 code that nothing describes, from the code itself: how far each instruction moves
 * the stack pointer, and where the caller's frame pointer is saved. For programs whose C library is
 * built without call-frame information, as musl mostly is.
 *
 * A call's target begins a function, which is gone over from instruction to instruction; every jump
 * tells its target what the stack is there, and what was told something only when it had been
 * passed is followed again from there, not from the function's beginning. What nothing has jumped
 * to and nothing falls into is reached by a jump through a table, if there is one, and has its
 * stack; else another function begins there. Whoever clears the frame pointer without having saved
 * it is an outermost frame (System V ABI for AMD64 §3.4.1). Where the stack pointer is not known,
 * since it was aligned, its old value serves, if that was stored on the stack, or the frame
 * pointer, if it was set from it; else there is no rule.
 *
 * Where even less is known of the code (`strict`: an assembler's functions amid a file whose own
 * are described, of which neither calls nor symbols tell) a function also begins at a round address
 * behind the end of something, or behind a call and padding, if no jump leads there or, being
 * short, over it. Nothing is said of a function that never returns with the return address on top
 * of the stack, nor jumps so to where another begins; nor of one with bytes that are no
 * instruction, as the tables of numbers have that stand amid libcrypto's code. */
#pragma once

#include "cfi/reduce.h"
#include "codescan/tracked-stack.h"
#include "elf/window.h"

#define ROWS_CODE_MAX   (UINT64_C(8) << 20) /* bytes of code in one piece */
#define ROWS_CODE_JUMPS 4096u               /* targets in a function; a power of two */
/* Of what nothing leads to in a function; who needs more of them is not understood, and the next one would be wrong. */
#define ROWS_CODE_GUESSES 32u
/* instructions decoded for each byte, over all code so far; C libraries need 0.5 to 3 */
#define ROWS_CODE_WORK        16u
#define ROWS_CODE_WORK_STRICT 4u   /* codecs and libraries need 0.4 to 2 */
#define ROWS_CODE_LATER       256u /* beginnings in code that comes later; the last ones are kept */

struct rows_code_jump {
	uint32_t function; /* its number; another: this place is free */
	uint32_t target;   /* from `start` */
	struct rows_stack state;
};

struct rows_code {
	bool strict;
	bool absolute;  /* addresses stand in the code as they are: the file is not moved */
	uint64_t entry; /* of the program, or 0 */
	struct window window;
	uint64_t start, end; /* addresses */
	uint8_t *called;     /* a bit for each byte: a function begins there */
	uint8_t *supposed,
		*jumped; /* for each round address: one may begin there, it is jumped to; of `called`'s memory */
	size_t capacity;
	struct rows_code_jump *jumps;
	uint64_t later[ROWS_CODE_LATER];
	size_t n_later;
	uint64_t work,
		enough;    /* instructions decoded so far; from how many on the rest is given up */
	uint32_t function; /* number of the one at hand */
	uint64_t function_start, function_end;
	uint64_t at;      /* the next instruction */
	bool stopped;     /* none falls through to it */
	bool wrong;       /* a return that finds no return address */
	bool distrust;    /* so nothing is said of this function */
	bool late;        /* what lies before `reached` was told something new */
	uint64_t reached; /* as far as the function was gone over */
	uint8_t *told,
		*fresh; /* a bit for each byte of the function: it was told what the stack is; that was not followed yet */
	size_t told_capacity;
	unsigned int guesses; /* in this function */
	bool crossed;         /* a jump leads over `seed` */
	bool returns;
	bool data;        /* it has bytes that are no instruction */
	uint64_t split;   /* the last beginning that was only supposed */
	uint64_t lost;    /* the first instruction of this pass that nothing leads to; 0: none */
	uint64_t seed;    /* the first one that another function seems to begin with; 0: none */
	uint64_t aligned; /* the last round address right behind a call; 0: none yet */
	bool after_call;
	struct rows_stack state, table, lost_state;
};

#define ROWS_CODE_NULL ((struct rows_code){0})

/* Begins with the code at [start, end), which lies at `offset` of the file; may be called again for
 * other code. 0, -E2BIG (more than ROWS_CODE_MAX), -ENOMEM or an errno of a read. Memory: a seventh
 * of the code, a quarter of its largest function, a window, and 150 KiB for jumps. One pass over
 * the code; later each function is gone over two to four times, and nothing is said of those that
 * are left when that was too much: time is linear in the code, whatever it is. */
int rows_code_begin(struct rows_code *c, int fd, uint64_t offset, uint64_t start, uint64_t end);
/* A function begins at an address, from another source. */
void rows_code_mark(struct rows_code *c, uint64_t address);
/* The next piece, ascending: 1, 0 at the end, or an errno. */
int rows_code_next(struct rows_code *c, struct rows_piece *ret);
void rows_code_free(struct rows_code *c);

/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of Go's functions, from the table of stack sizes that its runtime walks by (pclntab.h), for
 * x86-64 and arm64.
 *
 * The table says how far the stack pointer is below where it was at entry; above it, where
 * the return address is in a register, as in syscall.rawVforkSyscall. Whatever has a frame
 * saves the frame pointer in it. Where a function changes stacks the table does not hold behind the
 * change: then the frame pointer leads to the stack that was left (runtime.systemstack, asmcgocall,
 * cgocallback), or nothing does and the stack that was changed to ends there (mcall, morestack).
 *
 * Sources: cmd/internal/obj/x86/obj6.go and arm64/obj7.go (frames), runtime/asm_amd64.s,
 * asm_arm64.s and sys_linux_*.s, runtime/traceback.go of Go 1.15 to 1.26. */
#pragma once

#include "gosym/pclntab.h"
#include "cfi/reduce.h"

#define ROWS_GO_WINDOWS 16u
#define ROWS_GO_CODE    512u /* bytes looked at of a function that is not compiled from Go */

struct rows_go {
	const struct rows_machine *machine;
	const struct elf_file *file;
	struct pclntab table;
	uint64_t entry[2];            /* of the program, and where it jumps to */
	size_t at;                    /* number of the next function */
	struct pclntab_function next; /* it, where any_next says so */
	bool any_next;
	struct buf name;
	/* Equal tables of stack sizes stand once, where the first function needs them: so one piece
	 * of them is kept for each of a few regions. */
	struct window windows[ROWS_GO_WINDOWS];
	/* The function at hand. */
	struct pclntab_function function;
	struct pclntab_rows rows;
	bool saves_fp; /* wherever it has a frame */
	/* Register that holds the return address where it is not on the stack; 0: none. */
	uint8_t popped;
	uint64_t split; /* from here on it is as `behind` says */
	uint8_t behind;
	uint64_t signal_rule;
	struct rows_piece rest; /* the part of a row behind `split`; empty: there is none */
};

/* Opens the table of a Go program. -ENOENT: it is none; else pclntab_open's. The file must outlive
 * it. */
int rows_go_open(struct rows_go *g, const struct rows_machine *m, struct elf_file *f);
void rows_go_close(struct rows_go *g);

/* Whether the program's code is Go's alone; else C is linked into it. */
bool rows_go_is_all(struct rows_go *g);

/* Where the next function begins: 1, 0 at the end, or negative. */
int rows_go_peek(struct rows_go *g, uint64_t *ret);
/* Begins with the function that was peeked at: 0, or negative. Reads its code where it is assembly.
 */
int rows_go_take(struct rows_go *g, uint64_t *ret_end);
/* Its next piece: 1, 0 when there is none, or negative. What signal handlers return to begins one
 * byte before its entry. */
int rows_go_next(struct rows_go *g, struct rows_piece *ret);

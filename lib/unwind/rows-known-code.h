/* SPDX-License-Identifier: Apache-2.0 */
/* Rows for code that no table describes and that is known by its bytes: what signal handlers return
 * to, where a program is entered or a thread begins, what runs at the start and the end of a file's
 * use, and procedure linkage tables of linkers that describe none.
 *
 * Sources: the kernel's arch/x86/kernel/signal_64.c and arch/arm64/kernel/vdso/sigreturn.S (the
 * trampolines are ABI; debuggers know them by the same bytes); System V ABI for AMD64 §3.4.1 and
 * ABI for the Arm 64-bit architecture §5.2 (a process's entry has no caller), §5.2.3 and ELF for
 * the Arm 64-bit architecture §8 (linkage tables).
 *
 * And for one that is described, known by its name: where greenlet begins a stack of its own.
 * Greenlets share the thread's stack and copy their parts of it away, so its caller's frame is
 * right only until somebody else runs. Source: greenlet's TUserGreenlet.cpp. */
#pragma once

#include "cfi/reduce.h"

#define ROWS_MADE_MAX 16u

/* Ascending, disjoint. */
struct rows_made {
	struct rows_piece pieces[ROWS_MADE_MAX];
	size_t n, at;
};

/* Finds both kinds in a file whose sections are loaded. *ret_signal counts before anything that the
 * file says: the code itself is the ABI. *ret_rest fills in what nothing else describes. 0, -ENOMEM
 * or an errno. Reads the text of files that are programs or loaders without an interpreter, of
 * others a few bytes. */
int rows_made_find(struct rows_made *ret_signal, struct rows_made *ret_rest,
		   const struct rows_machine *m, const struct elf_file *f, bool go);

/* The rule of [from, to), which nothing describes, if it is where C libraries leave the system call
 * that makes a thread: both threads pass there, the new one with nobody to return to. 0: it is not;
 * or an errno in *ret_error. A read of a few bytes, and only of stretches as long as that. */
uint64_t rows_made_thread(const struct rows_machine *m, const struct elf_file *f, uint64_t from,
			  uint64_t to, int *ret_error);

/* Whether code begins with what signal handlers return to, and the rule of that; else 0. */
uint64_t rows_made_trampoline(const struct rows_machine *m, const uint8_t *code, size_t n);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code of a file that no table describes, range by range, for rows that are made from the
 * code itself (rows-code.h). Only of x86-64 programs and loaders that have no interpreter: there a
 * C library without call-frame information is part of every stack. In others gaps are small, and
 * what is said about them would be a guess for nothing.
 */
#ifndef ELF_ROWS_GAPS_H
#define ELF_ROWS_GAPS_H

#include "elf/rows-code.h"

#define ROWS_GAPS_LEAST 2u   /* bytes */
#define ROWS_GAPS_NAMED 256u /* from this size on symbols are looked at */

struct rows_gaps {
	const struct elf_file *file;
	const struct elf_file *named; /* has its symbols */
	bool on;
	struct rows_code code;
};

/* Whether a file is looked at. Its sections are loaded, and those of its debug file (or NULL), whose symbols are taken
 * where it has none; both must outlive *g. 0 or an errno. */
int rows_gaps_open(struct rows_gaps *g, const struct rows_machine *m, const struct elf_file *f,
		   const struct elf_file *debug);
void rows_gaps_close(struct rows_gaps *g);

/* Begins with the first code in [from, to): 1 and where it begins and ends, 0: there is none, or an
 * errno. Then its pieces are rows_code_next's. */
int rows_gaps_begin(struct rows_gaps *g, uint64_t from, uint64_t to, uint64_t *ret_start,
		    uint64_t *ret_end);

#endif

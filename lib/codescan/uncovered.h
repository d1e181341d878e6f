/* SPDX-License-Identifier: Apache-2.0 */
/* The code of a file that no table describes, range by range, for rows that are made from the code
 * itself (code-rows.h). Of x86-64 programs and loaders that have no interpreter all of it: there a
 * C library without call-frame information is part of every stack. In other x86-64 files what is
 * large enough to be an assembler's (codecs are half written by hand, and describe nothing), unless
 * it keeps frame pointers; smaller gaps are padding and stubs, and what is said about them would be
 * a guess for nothing. */
#pragma once

#include "codescan/code-rows.h"

#define ROWS_GAPS_LEAST 2u   /* bytes */
#define ROWS_GAPS_NAMED 256u /* from this size on symbols are looked at */
#define ROWS_GAPS_CODE  256u /* from this size on others' gaps are */
/* Of a file that describes its code: what is left of so much of its gaps is not looked at. */
#define ROWS_GAPS_MOST (UINT64_C(16) << 20)
/* Sections, segments and symbols are gone over for each gap again: no more of them than so many
 * together. A program of 300,000 symbols and 200 gaps of ROWS_GAPS_NAMED needs half. */
#define ROWS_GAPS_ENTRIES (UINT64_C(1) << 27)
/* More than any function has: what is so large and not described comes from another compiler that
 * describes nothing. It may keep frame pointers, as the code that node brings for its JavaScript
 * does. */
#define ROWS_GAPS_FOREIGN (UINT64_C(128) << 10)
#define ROWS_GAPS_SAMPLES 24u /* of such gaps of a file; node and libx265 have 3 */

struct rows_gaps {
	const struct elf_file *file;
	const struct elf_file *named; /* has its symbols */
	bool x86;
	bool on;          /* all of it is looked at */
	uint64_t left;    /* bytes that will be; a program's own gaps are no more than its file */
	uint64_t entries; /* of tables that will be */
	unsigned int samples;        /* taken by rows_gaps_keep_frames */
	uint64_t framed, framed_end; /* what it has said 1 of last */
	struct rows_code code;
};

/* Whether a file is looked at. Its sections are loaded, and those of its debug file (or NULL),
 * whose symbols are taken where it has none; both must outlive *g. 0 or an errno. */
int rows_gaps_open(struct rows_gaps *g, const struct rows_machine *m, const struct elf_file *f,
		   const struct elf_file *debug);
void rows_gaps_close(struct rows_gaps *g);

/* Begins with the first code in [from, to): 1 and where it begins and ends, 0: there is none, or an
 * errno. Then its pieces are rows_code_next's. */
int rows_gaps_begin(struct rows_gaps *g, uint64_t from, uint64_t to, uint64_t *ret_start,
		    uint64_t *ret_end);

/* Whether the code in [from, to) keeps frame pointers, as far as a sample of up to 256 KiB shows: 1, 0 or an errno. */
int rows_gaps_keep_frames(struct rows_gaps *g, uint64_t from, uint64_t to);

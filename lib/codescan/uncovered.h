/* SPDX-License-Identifier: Apache-2.0 */
/* The code of a file that no table describes, range by range, for rows made from the code itself
 * (code-rows.h).
 *
 *     described │   gap   │ described │      gap      │        addresses ─▶
 *               └ stubs ┘             └ assembler: rows from its code ┘
 *
 * An x86-64 program or loader without an interpreter is followed as a whole: its C library may have
 * no call-frame information, and is part of every stack. In other x86-64 files a gap is followed if
 * it is large enough for an assembler's functions (codecs are half written by hand, and describe
 * nothing); one larger than any function only if it does not keep frame pointers. Smaller gaps are
 * padding and stubs; rows for them would be guesses that nobody needs. */
#pragma once

#include "codescan/code-rows.h"

#define UNCOVERED_MIN_BYTES 2u /* less is no code */
/* The least gap that is followed in a file that describes other code. */
#define UNCOVERED_PART_BYTES  256u
#define UNCOVERED_NAMED_BYTES 256u /* symbols are read for gaps from this size on */
/* Bytes of gaps that are followed in a file that describes other code. */
#define UNCOVERED_MAX_BYTES (UINT64_C(16) << 20)
/* Sections, segments and symbols are read again for each gap: at most so many together. A program
 * of 300,000 symbols and 200 gaps of UNCOVERED_NAMED_BYTES needs half of that. */
#define UNCOVERED_MAX_ENTRIES (UINT64_C(1) << 27)
/* Larger than any function: such a gap comes from a compiler that describes nothing, and may keep
 * frame pointers, as the code that node brings for its JavaScript does. */
#define UNCOVERED_FOREIGN_BYTES (UINT64_C(128) << 10)
#define UNCOVERED_SAMPLES       24u /* of such gaps of a file; node and libx265 have 3 */

struct uncovered {
	const struct elf_file *file;
	const struct elf_file *symbols; /* `file` or its debug file */
	bool x86;
	bool whole;            /* all code is followed, not only large gaps */
	uint64_t bytes_left;   /* that may be followed; not more than the file, if `whole` */
	uint64_t entries_left; /* of tables that may be read */
	unsigned int samples;  /* taken by uncovered_keeps_frames */
	uint64_t framed_start, framed_end; /* the last range found to keep frame pointers */
	struct code_rows code;
};

/* Decides what of a file is followed. Its sections are loaded, and those of its debug file (or
 * NULL), whose symbols are taken where it has none; both must outlive *u. 0 or an errno. */
int uncovered_open(struct uncovered *u, const struct rows_machine *m, const struct elf_file *f,
		   const struct elf_file *debug);
void uncovered_close(struct uncovered *u);

/* Begins with the first code in [from, to) that is followed: 1 and where it begins and ends, 0:
 * there is none, or an errno. Then its pieces are code_rows_next's. */
int uncovered_begin(struct uncovered *u, uint64_t from, uint64_t to, uint64_t *ret_start,
		    uint64_t *ret_end);

/* Whether the code in [from, to) keeps frame pointers, by a sample of up to 256 KiB: 1, 0 or an
 * errno. */
int uncovered_keeps_frames(struct uncovered *u, uint64_t from, uint64_t to);

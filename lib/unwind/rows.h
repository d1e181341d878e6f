/* SPDX-License-Identifier: Apache-2.0 */
/* How every address of a file's code is unwound: rows, each a rule that holds from its address up
 * to the next row's, made from what the file carries (call-frame information, Go's pc tables) and,
 * where it carries nothing, from its code: what is known by its bytes (signal trampolines, entries,
 * linkage tables), and all of x86-64 programs and loaders that have no interpreter, whose C library
 * may be described nowhere. Stretches larger than functions that are not described are taken to
 * keep frame pointers.
 *
 * Rows come ascending and merged: neighbours differ in rule or auxiliary word. Where no function is
 * described a row with rule 0 says so. The file is streamed: memory is an index of its functions at
 * most, never its tables. A rule that the word (unwind-tables.h) cannot hold becomes 0 and is
 * counted; so does whatever is broken in an untrusted file.
 *
 * Sources: .eh_frame with or without .eh_frame_hdr, .debug_frame, .gopclntab. Formats: Linux
 * Standard Base Core 5.0 §10.6, DWARF 5 §6.4, System V ABI for AMD64 §3.7. */
#pragma once

#include "elf/file.h"

struct elf_row {
	uint64_t address; /* the file's own */
	uint64_t rule;    /* unwind-tables.h */
	uint64_t aux;
};

/* Anything but 0 ends the reading, which returns it. */
typedef int (*elf_row_fn)(void *context, const struct elf_row *row);

#define ELF_ROWS_EH_FRAME    0
#define ELF_ROWS_DEBUG_FRAME 1
#define ELF_ROWS_GO          2
#define ELF_ROWS_MADE        3 /* from code */
#define ELF_ROWS_SOURCES     4

struct elf_rows_stats {
	uint64_t rows[ELF_ROWS_SOURCES]; /* given out, by where they come from */
	uint64_t functions;
	uint64_t inexpressible; /* rows whose rule became 0 because the word cannot hold it */
	uint64_t broken;        /* functions whose information does not parse */
	bool aux;               /* any auxiliary word is not 0 */
};

struct elf_rows_options {
	/* The separate debug file, for .debug_frame and symbols, sections loaded; or NULL. */
	const struct elf_file *debug;
	bool aux;             /* auxiliary words also where no rule of the file needs them */
	size_t max_functions; /* the index's bound: 16 bytes each; 0: 4 million */
};

/* Gives out the rows of a file. Loads the sections. 0, also where there are none;
 * -E2BIG: more than max_functions; -ENOMEM, an errno, or what `fn` returned.
 * O(bytes of call-frame information + functions · log functions where there is no sorted
 * header). *ret_stats is filled in as far as it went. */
int elf_rows_read(struct elf_file *f, const struct elf_rows_options *options, elf_row_fn fn,
		  void *context, struct elf_rows_stats *ret_stats, struct error *err);

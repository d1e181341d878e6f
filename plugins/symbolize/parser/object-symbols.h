/* SPDX-License-Identifier: Apache-2.0 */
/* All that one object's files say of its addresses: symbol tables, Go's table, debug information.
 * Files are read through descriptors that somebody else has opened; each part is read when it is
 * first needed.
 *
 * Order: .symtab; the .symtab of the debug file; .dynsym; .gnu_debugdata; slots of linkage tables;
 * Go's table; debug information. The first that covers the address names the function. Lines and
 * inlined calls come from Go's table where there is one, since it needs no debug information, else
 * from debug information of the file itself, else of the debug file. A symbol without a size ends
 * where, by call-frame information, another function begins. A perf map or a jitdump instead of an
 * ELF file names what a runtime has compiled. */
#pragma once

#include "dwarf/dwarf.h"
#include "elf/debuglink.h"
#include "cfi/functions.h"
#include "elf/jit.h"
#include "gosym/pclntab.h"
#include "elf/symbols.h"

/* Descriptors of an object. */
enum tables_file {
	TABLES_FILE,
	TABLES_DEBUG,   /* by build id, or by link */
	TABLES_ALT,     /* dwz's */
	TABLES_PACKAGE, /* of split units */
	TABLES_FILES
};

/* Where a name came from. */
enum tables_source {
	FROM_SYMTAB,
	FROM_DEBUG,
	FROM_DYNSYM,
	FROM_MINIDEBUG,
	FROM_GO,
	FROM_DWARF,
	FROM_JIT,
	FROM_KERNEL,
	FROM_COUNT
};

struct tables_limits {
	size_t max_bytes; /* of memory, about */
	uint64_t steps;   /* entries and line instructions for each call of tables_grant */
	bool lines, inlines;
	bool symbols_only; /* debug information is left alone */
};

struct tables {
	int fds[TABLES_FILES]; /* -1: none */
	struct tables_limits limits;
	struct elf_file file;
	struct elf_symbols own, debug, small; /* small: out of .gnu_debugdata */
	struct elf_functions functions; /* by call-frame information, once somebody has asked */
	bool functions_tried;
	int small_fd;
	bool has_go;
	struct pclntab go;
	struct dwarf *dwarf;
	VEC(int) splits; /* files of split units, one each */
	int dwarf_error; /* why there is none: -ENOENT, -EAGAIN (split), -ETIME (set aside), … */
	bool dwarf_tried;
	int over; /* what it takes too much of, so that not all is read: -ETIME, -E2BIG (memory) */
	struct elf_debuglinks links;
	bool is_jit; /* the file is no ELF file but a perf map or a jitdump, and nothing else is
			there */
	struct jit jit;
	struct buf name;
};

/* Takes the descriptors over, also on failure; fds[TABLES_FILE] must be there. A debug file that is
 * not the file's own (another build id; without one, another CRC) is left out. -ENOEXEC and the
 * like: the file does not parse, with a sentence; -ENOMEM. */
int tables_open(struct tables *t, int fds[TABLES_FILES], const struct tables_limits *limits,
		struct error *err);
void tables_close(struct tables *t);
size_t tables_bytes(const struct tables *t);

/* Whether a debug file would tell more than what is there: no debug information, and not of Go. May
 * read where code is. */
bool tables_lacks(struct tables *t);

/* How many descriptors it keeps open, about. */
size_t tables_n_fds(const struct tables *t);

/* Appends the paths of split units' files that were missing, each with a NUL behind it. 0, -ENOMEM.
 */
int tables_wants(struct tables *t, struct buf *ret);

/* Adds such a file; takes the descriptor over, also on failure. 0, or as dwarf_add_split. */
int tables_add_split(struct tables *t, int fd);

/* Steps for what follows. */
void tables_grant(struct tables *t);

/* The frames of an address, innermost first, replacing what *ret held; *source is who named the
 * function. -ENOENT: nothing covers it; -EAGAIN: nothing does yet (a runtime may still tell);
 * -ENOMEM; else files could not be read. Ask in the order of addresses. */
int tables_find(struct tables *t, uint64_t address, struct dwarf_frames *ret,
		enum tables_source *source);

/* Where the function begins that covers an address without a name, by call-frame information. 0,
 * -ENOENT: that is not known; -ENOMEM. The section is read once, when somebody asks. */
int tables_function(struct tables *t, uint64_t address, uint64_t *ret);

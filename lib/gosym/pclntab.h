/* SPDX-License-Identifier: Apache-2.0 */
/* Go's table of functions, lines and stack sizes (.gopclntab): what a Go runtime walks its own
 * stacks by, so it is in every Go program, stripped or not. Read from the file with pread in
 * pieces; nothing of it is loaded.
 *
 * Read here: the headers of Go 1.2 to 1.15, 1.16 to 1.17, 1.18 to 1.19 and since 1.20, of 64-bit
 * little-endian programs. Found by section name, and where that is gone (sections stripped, or
 * merged into .data.rel.ro as GNU ld does with PIE) by its header in the loaded segments. Since
 * 1.18 its addresses are relative to the start of the text, which stands in the header, or in the
 * module's data (runtime.moduledata), found by its pointer to the header, in the file or among the
 * relocations of a PIE. The module's data also say where the trees of inlined calls are.
 *
 * Sources: cmd/link/internal/ld/pcln.go, runtime/symtab.go, symtabinl.go,
 * runtime2.go and internal/abi/symtab.go of Go 1.15, 1.17, 1.18, 1.21 and 1.26;
 * golang.org/s/go12symtab.
 *
 * Every function that reads: -ENOEXEC where the table contradicts itself,
 * -ENODATA where the file is shorter than it was, -ENOMEM, or pread's errno. Used by one
 * thread at a time. */
#pragma once

#include "elf/file.h"
#include "elf/window.h"

#define PCLNTAB_GO12  2
#define PCLNTAB_GO116 16
#define PCLNTAB_GO118 18
#define PCLNTAB_GO120 20

/* Flags of a function; there since Go 1.17 (0 before). */
#define PCLNTAB_TOP_FRAME 1u /* a stack ends here */
#define PCLNTAB_SP_WRITE  2u /* sets the stack pointer: pcsp does not hold past it */
#define PCLNTAB_ASM       4u

#define PCLNTAB_NO_TREE UINT32_MAX

struct pclntab {
	int version; /* PCLNTAB_GO… */
	uint8_t quantum;
	uint64_t address; /* virtual, of the header */
	uint64_t text;    /* what entries are relative to; 0 where they are not */
	size_t n_functions;
	/* Offsets from the header. */
	uint64_t functions, names, units, files, values;
	uint32_t n_files;
	const struct elf_file *file;
	struct window index, records, rows, texts;
	struct window trees; /* empty: not found, there are no inlined calls */
};

#define PCLNTAB_NULL ((struct pclntab){0})

/* Finds the table. Loads the sections. The file and its descriptor must outlive *ret. 0; -ENOENT:
 * no Go program; -ENOTSUP: a table whose addresses the file does not tell (Go before 1.18 in a PIE
 * made by another linker). Reads the header and, from 1.18 on, finds the module's data: by their
 * section, else in one pass over the writable segments and the relocations. A file that is not of
 * Go and has its sections costs nothing more. */
int pclntab_open(struct pclntab *ret, struct elf_file *f, struct error *err);
void pclntab_close(struct pclntab *t);

/* Ids of special functions differ between versions of Go; flags do not. An offset of 0 stands for
 * no table. */
struct pclntab_function {
	uint64_t entry, end; /* [entry, end), padding included */
	uint32_t name;       /* for pclntab_name */
	uint32_t start_line; /* 0: unknown (before 1.20) */
	uint32_t unit;
	uint8_t id, flags;
	uint32_t pcsp, pcfile, pcln; /* for pclntab_rows and pclntab_value */
	uint32_t inlined;            /* likewise: rows of indices into the tree, -1: not inlined */
	uint32_t tree;               /* for pclntab_inlined */
};

/* The i-th function, i < n_functions; entries rise with i. Amortised O(1) when asked in order. */
int pclntab_function(struct pclntab *t, size_t i, struct pclntab_function *ret);

/* The one that covers an address. -ENOENT: none does. O(log functions). */
int pclntab_find(struct pclntab *t, uint64_t address, struct pclntab_function *ret);

/* Appends a name, at most ELF_NAME_MAX bytes of it ("main.(*ring).step"). */
int pclntab_name(struct pclntab *t, uint32_t name, struct buf *out);

/* Appends the path of file number `file` (a value of pcfile) of a function's unit. -ENOENT: that
 * file has no name. */
int pclntab_file(struct pclntab *t, const struct pclntab_function *f, int32_t file,
		 struct buf *out);

/* A table of values by address, row by row: how far the stack pointer is below where it was at
 * entry (pcsp: bytes, without the return address), file, line, inlined call. Rows join, the first
 * begins at the entry, and none reaches beyond the function's end; there is at most one a quantum
 * of code. */
struct pclntab_row {
	uint64_t start, end;
	int32_t value;
};

struct pclntab_rows {
	uint64_t end;
	uint64_t at; /* in the table of rows; 0: no more */
	struct pclntab_row row;
};

struct pclntab_rows pclntab_rows(const struct pclntab_function *f, uint32_t table);
/* 1 and rows->row; 0: no more; negative. */
int pclntab_next(struct pclntab *t, struct pclntab_rows *rows);

/* The value at one address. -ENOENT: the table says nothing of it. O(rows). */
int pclntab_value(struct pclntab *t, const struct pclntab_function *f, uint32_t table,
		  uint64_t address, int32_t *ret);

/* A call that the compiler has inlined. */
struct pclntab_call {
	uint32_t name;       /* of the called function */
	uint32_t start_line; /* of the called function; 0: unknown */
	uint64_t call;       /* an address of the line that calls it */
	uint8_t id;
};

/* Call number `index` (a value of f->inlined) of the function's tree. Which call that one stands in
 * is the value of f->inlined at ret->call, which lies within the function. Calls may name each
 * other in a circle: who follows them counts. */
int pclntab_inlined(struct pclntab *t, const struct pclntab_function *f, int32_t index,
		    struct pclntab_call *ret);

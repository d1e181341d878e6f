/* SPDX-License-Identifier: Apache-2.0 */
/* The function symbols of a file: which one covers an address.
 *
 * The table holds 16 bytes a function and no names; those stay in the file and are read when an
 * address is looked up, which the caller then remembers. So the largest binaries cost their
 * functions times 16, and only names that are hot are ever read.
 *
 * A symbol's extent is its size; where that is 0, it runs up to the next function, at most to the
 * end of the section that holds it (and is said to be open: the caller may know of functions that
 * have no symbol, by functions.h). There is no name beyond an extent. Where extents nest, the
 * innermost counts.
 *
 * Of several names for one address: one that other files can see (global or
 * weak) before a local one, then fewest leading underscores, then the
 * shortest, then the first in byte order. So "read", not "__libc_read" or
 * "__read". Folded functions may have thousands of names; the 64 that stand
 * first in the string table are compared. Of two symbols with different sizes at one address the
 * larger decides nothing: each covers what it covers.
 *
 * Types FUNC and GNU_IFUNC count. Data, labels without type (among them arm64's $x and $d) and
 * imports do not. */
#pragma once

#include "elf/file.h"

#define ELF_NAME_MAX ((size_t)4096)

#define ELF_SYMBOLS_NONE   0
#define ELF_SYMBOLS_SYMTAB 1
#define ELF_SYMBOLS_DYNSYM 2

struct elf_symbol; /* private */

struct elf_symbols {
	struct elf_symbol *list; /* by address */
	size_t n;
	uint64_t names, names_size; /* the string table in the file */
	int source;                 /* ELF_SYMBOLS_* */
};

#define ELF_SYMBOLS_NULL ((struct elf_symbols){0})

/* Reads .symtab, or .dynsym where that holds no function; neither is no
 * error (source NONE). Loads the sections. -E2BIG: more than `max` functions,
 * -ENOTSUP: a relocatable file, whose addresses mean nothing yet; -ENOEXEC,
 * -ENOMEM or an errno. O(n log n), the table read twice in 48 KiB pieces;
 * peak memory twice the table's. */
int elf_symbols_load(struct elf_symbols *ret, struct elf_file *f, size_t max, struct error *err);
void elf_symbols_free(struct elf_symbols *s);

/* Memory that the table takes. */
size_t elf_symbols_bytes(const struct elf_symbols *s);

struct elf_extent {
	uint64_t address;
	uint64_t size;
	/* The symbol has no size: it may end before, where a function without a name begins. */
	bool open;
};

/* Finds the function that covers `address`, and reads its name from `fd` (the same file) into
 * *name, replacing what was there: raw bytes without a version ("@GLIBC_2.2.5"), at most
 * ELF_NAME_MAX. ret may be NULL. 0, -ENOENT if none does, -ENOMEM or an errno. O(log n) and a pread
 * for each alias, at most 64. */
int elf_symbols_find(const struct elf_symbols *s, int fd, uint64_t address, struct buf *name,
		     struct elf_extent *ret);

/* Whether `a` is the better of two names for one thing, by the rule above. */
bool elf_name_better(struct str a, struct str b);

/* SPDX-License-Identifier: Apache-2.0 */
/* Debug information for tests, written by the test, in the forms that compilers, dwz and packers of
 * split units give it. Whatever the form, it says the same:
 *
 *   /src/a.c   10 int inner(…)              linked name "_inner", not called as such
 *              20 int outer(…)              [OUTER, +0x100)
 *              21     inner(…)              column 7, inlined at [OUTER+0x40, +0x40)
 *   lines      OUTER 20, +0x10 21, +0x40 11 (column 3), +0x80 22
 *   far        function at [REMOTE, +0x10), line 30, in a range of its own */
#pragma once

#include "base/buf.h"

#include <stdint.h>

#define OUTER  0x401000u
#define REMOTE 0x500000u

struct dwarf_shape {
	uint8_t version; /* 2 to 5 */
	bool wide;       /* 64-bit offsets */
	bool ranges;     /* code as lists of ranges */
	bool indexed;    /* texts, addresses and ranges by index (version 5) */
	bool alt;        /* the abstract function is in dwz's file */
	bool split;      /* the entries are in a split file */
	bool package;    /* which is a package */
	bool compressed; /* .debug_info is, with zlib */
	bool lines_only; /* there is nothing but the table of lines */
};

struct dwarf_written {
	struct buf main, alt, split; /* ELF files; empty: there is none */
};

void dwarf_write(const struct dwarf_shape *s, struct dwarf_written *ret);
void dwarf_written_free(struct dwarf_written *w);

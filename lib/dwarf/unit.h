/* SPDX-License-Identifier: Apache-2.0 */
/* A unit: what its first entry says of all others, and what their values mean by it: texts,
 * addresses, ranges. */
#pragma once

#include "dwarf/die.h"
#include "dwarf/file.h"

#define DWARF_TEXT_MAX ((size_t)4096)

struct unit {
	const struct unit_head *head;
	struct dwarf_file *file; /* that holds its entries */
	struct dwarf_file *main; /* that holds addresses, ranges and lines */
	struct dwarf_file *alt;  /* dwz's; NULL: there is none */
	struct die root;
	uint64_t str_offsets_base, addr_base, rnglists_base, ranges_base;
	uint64_t low; /* what its ranges are relative to */
};

struct span {
	uint64_t low, high;
};
struct spans {
	VEC(struct span) list;
};

/* Reads the first entry; a table of lines alone (DW_UT_lines) stands for one that says where it is.
 */
int unit_open(struct unit *u, struct dwarf_file *file, const struct unit_head *head,
	      struct dwarf_file *alt);

/* Makes `split` (opened by unit_open) the body of a skeleton. */
void unit_join(struct unit *split, const struct unit *skeleton);

/* Appends a text, at most DWARF_TEXT_MAX bytes. -ENOENT: no text, or in a file that is not there.
 */
int unit_text(const struct unit *u, const struct form_value *v, struct buf *out);

/* Entry i of .debug_addr, or the address itself. */
int unit_address(const struct unit *u, const struct form_value *v, uint64_t *ret);

/* Where an entry's code is, replacing what *ret held; empty where it has none. At most
 * `max` ranges: -E2BIG. */
int unit_ranges(const struct unit *u, const struct die *d, size_t max, struct spans *ret);

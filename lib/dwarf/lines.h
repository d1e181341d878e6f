/* SPDX-License-Identifier: Apache-2.0 */
/* A unit's table of lines, decoded: 16 bytes a row. */
#pragma once

#include "dwarf/unit.h"

struct line_row {
	uint64_t address;
	uint32_t line;
	uint16_t file, column;
};

struct line_sequence {
	uint64_t low, high;
	uint32_t first, n;
};

struct line_file {
	uint64_t folder;
	struct form_value path;
};

struct lines {
	VEC(struct line_row) rows;
	VEC(struct line_sequence) sequences; /* by low */
	VEC(struct line_file) files;
	VEC(struct form_value) folders;
	struct dwarf_format format;
};

/* Decodes the table that the unit points to. Rows of one address, and rows
 * that repeat the line before, are one. -ENOENT: the unit has none; -E2BIG: more than max_rows;
 * -ETIME: *steps, one for each instruction, ran out; -ENOEXEC, -ENOMEM or pread's errno. */
int lines_load(struct lines *ret, const struct unit *u, size_t max_rows, uint64_t *steps);
void lines_free(struct lines *l);
size_t lines_bytes(const struct lines *l);

/* The row that covers an address; NULL if none does. O(log n). */
const struct line_row *lines_find(const struct lines *l, uint64_t address);

/* Appends the path of a file by its number: absolute where the table or the unit says so. -ENOENT:
 * there is no such file. */
int lines_path(const struct lines *l, const struct unit *u, uint64_t file, struct buf *out);

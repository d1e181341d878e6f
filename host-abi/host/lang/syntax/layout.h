/* SPDX-License-Identifier: Apache-2.0 */
/* Text in lines of cells, set in columns as Go's text/tabwriter does with padding 1 and tabs of 8:
 * the cells of a column that stand on lines one below the other are made equally wide. What stands
 * last on a line belongs to no column. Blanks at the end of a line vanish, unless text brought
 * them.
 *
 * Widths are found in one pass, not by recursion over columns: a cell joins the column of the cell
 * above, or begins one. What no later line can change is written out at once, so memory is that of
 * the longest run of lines with columns. */
#pragma once

#include "base/buf.h"
#include "base/vec.h"

#include <stdint.h>

struct layout_cell {
	size_t n;       /* bytes */
	size_t n_solid; /* of them, up to the last that is no blank of ours */
	uint32_t width; /* characters */
	uint32_t column;
	bool hard; /* the column keeps its width also if all its cells are empty */
	bool tab;  /* one tab, whatever the column's width */
};

struct layout_line {
	size_t first, n_cells;
};

struct layout_column {
	uint32_t width;
	bool hard;
};

/* Hostile text only: one wide name makes every line of its column as wide. */
#define LAYOUT_MAX_BYTES ((size_t)16 << 20)
#define LAYOUT_MAX_CELLS ((size_t)4 << 20)

struct layout {
	struct buf *out;
	size_t n_lines;  /* written out */
	struct buf text; /* of the lines that are not */
	VEC(struct layout_cell) cells;
	VEC(struct layout_line) lines;
	VEC(struct layout_column) columns;
	struct layout_cell cell; /* open */
	size_t first;            /* cell of the open line */
	int error;               /* 0, -ENOMEM, -E2BIG; nothing happens behind it */
};

struct layout layout_into(struct buf *out);

void layout_free(struct layout *l);

/* Text that may hold anything, also line ends, which are then part of the cell. */
void layout_text(struct layout *l, struct str s);
void layout_blank(struct layout *l);
/* Ends the cell. */
void layout_cell(struct layout *l, bool hard);
/* Ends an empty cell that is one tab. */
void layout_tab(struct layout *l);
/* Ends the line; `breaks`: all columns end with it. */
void layout_line(struct layout *l, bool breaks);

/* Writes out what is left, the last line without its end; the error, or 0. */
int layout_finish(struct layout *l);

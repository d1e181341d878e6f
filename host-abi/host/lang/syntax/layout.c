/* SPDX-License-Identifier: Apache-2.0 */
/* Columns. Contracts in layout.h. */
#include "host/lang/syntax/layout.h"

#include <errno.h>

#define TAB_WIDTH 8

struct layout layout_into(struct buf *out)
{
	return (struct layout){.out = out};
}

void layout_free(struct layout *l)
{
	buf_free(&l->text);
	vec_free(&l->cells);
	vec_free(&l->lines);
	vec_free(&l->columns);
}

static void fail(struct layout *l, int error)
{
	if (!l->error)
		l->error = error;
}

void layout_text(struct layout *l, struct str s)
{
	if (l->error)
		return;
	if (buf_str_append(&l->text, s) < 0)
		fail(l, -ENOMEM);
	l->cell.n += s.n;
	l->cell.n_solid = l->cell.n;
	for (size_t i = 0; i < s.n; i++)
		l->cell.width += ((unsigned char)s.p[i] & 0xc0) != 0x80;
}

void layout_blank(struct layout *l)
{
	size_t solid = l->cell.n_solid;

	layout_text(l, STR(" "));
	l->cell.n_solid = solid;
}

void layout_cell(struct layout *l, bool hard)
{
	l->cell.hard = hard;
	if (l->cells.n >= LAYOUT_MAX_CELLS)
		fail(l, -E2BIG);
	if (!l->error && !vec_push(&l->cells, l->cell))
		fail(l, -ENOMEM);
	l->cell = (struct layout_cell){0};
}

void layout_tab(struct layout *l)
{
	l->cell.tab = true;
	layout_cell(l, true);
}

/* Column of cell i: that of the cell above, or a new one. */
static struct layout_column *find_column(struct layout *l, const struct layout_line *above,
					 struct layout_cell *cell, size_t i)
{
	if (above && i + 1 < above->n_cells) {
		cell->column = l->cells.p[above->first + i].column;
		return &l->columns.p[cell->column];
	}
	cell->column = (uint32_t)l->columns.n;
	if (!vec_push(&l->columns, ((struct layout_column){0})))
		return NULL;
	return &l->columns.p[cell->column];
}

static void find_columns(struct layout *l)
{
	const struct layout_line *above = NULL;

	vec_each (&l->lines, line) {
		for (size_t i = 0; i + 1 < line->n_cells; i++) {
			struct layout_cell *cell = &l->cells.p[line->first + i];
			struct layout_column *column = find_column(l, above, cell, i);

			if (!column) {
				fail(l, -ENOMEM);
				return;
			}
			if (column->width < cell->width + 1)
				column->width = cell->width + 1;
			column->hard |= cell->hard || cell->width > 0;
		}
		above = line;
	}
}

static void put_n(struct layout *l, char c, size_t n)
{
	char *p;

	if (n > LAYOUT_MAX_BYTES || l->out->n > LAYOUT_MAX_BYTES - n) {
		fail(l, -E2BIG);
		return;
	}
	p = n ? buf_reserve(l->out, n) : NULL;
	if (!p)
		return;
	memset(p, c, n);
	l->out->n += n;
}

/* Empty cells in front become tabs, behind text they become blanks. */
static void pad(struct layout *l, const struct layout_cell *cell, size_t width, bool leading)
{
	if (cell->tab)
		put_n(l, '\t', 1);
	else if (leading)
		put_n(l, '\t', (width + TAB_WIDTH - 1) / TAB_WIDTH);
	else if (width > cell->width)
		put_n(l, ' ', width - cell->width);
}

/* Cuts the line's text from *text. */
static void put_line(struct layout *l, const struct layout_line *line, struct str *text)
{
	size_t solid = l->out->n;
	bool leading = true;

	for (size_t i = 0; i < line->n_cells; i++) {
		const struct layout_cell *cell = &l->cells.p[line->first + i];
		const struct layout_column *column =
			i + 1 < line->n_cells ? &l->columns.p[cell->column] : NULL;

		leading &= cell->n == 0;
		buf_str_append(l->out, str_first(*text, cell->n));
		*text = str_skip(*text, cell->n);
		if (cell->n_solid)
			solid = l->out->n - (cell->n - cell->n_solid);
		pad(l, cell, column && column->hard ? column->width : 0, leading);
		if (cell->tab)
			solid = l->out->n;
	}
	if (!l->out->failed)
		l->out->n = solid;
}

/* Writes the finished lines out. */
static void flush(struct layout *l)
{
	struct str text = buf_str(&l->text);

	find_columns(l);
	for (size_t i = 0; i < l->lines.n && !l->error; i++) {
		if (l->n_lines++ > 0)
			buf_putc(l->out, '\n');
		put_line(l, &l->lines.p[i], &text);
		if (l->out->failed)
			fail(l, -ENOMEM);
	}
	buf_clear(&l->text);
	l->cells.n = l->lines.n = l->columns.n = l->first = 0;
}

void layout_line(struct layout *l, bool breaks)
{
	struct layout_line line = {.first = l->first};

	layout_cell(l, false);
	line.n_cells = l->cells.n - l->first;
	if (!l->error && !vec_push(&l->lines, line))
		fail(l, -ENOMEM);
	l->first = l->cells.n;
	if (breaks || line.n_cells == 1)
		flush(l);
}

int layout_finish(struct layout *l)
{
	/* A cell that nothing was put into is none. */
	if (l->cell.n == 0 && l->cells.n > l->first)
		l->cell = l->cells.p[--l->cells.n];
	layout_line(l, true);
	return l->error;
}

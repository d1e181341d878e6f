/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of lines (DWARF 5, section 6.2; 2 to 4 likewise). Contract in lines.h. */
#include "dwarf/lines.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "dwarf/dw.h"

#include <errno.h>

#define MAX_FILES   (1u << 20)
#define MAX_FORMATS 16

struct program {
	struct lines *lines;
	struct cursor *c;
	uint64_t end; /* of the program */
	size_t max_rows;
	uint64_t *steps;
	uint8_t min_length, max_ops, line_range, opcode_base;
	int8_t line_base;
	uint8_t lengths[256];
	/* The machine. */
	uint64_t address, file, column, line;
	size_t first; /* row of the sequence */
};

void lines_free(struct lines *l)
{
	vec_free(&l->rows);
	vec_free(&l->sequences);
	vec_free(&l->files);
	vec_free(&l->folders);
}

size_t lines_bytes(const struct lines *l)
{
	return l->rows.capacity * sizeof(*l->rows.p) +
	       l->sequences.capacity * sizeof(*l->sequences.p) +
	       l->files.capacity * sizeof(*l->files.p) +
	       l->folders.capacity * sizeof(*l->folders.p);
}

/* --- The header --- */

static int add_entry(struct lines *l, const struct line_file *entry, bool folders)
{
	if ((folders ? l->folders.n : l->files.n) >= MAX_FILES)
		return -E2BIG;
	return (folders ? vec_push(&l->folders, entry->path) : vec_push(&l->files, *entry))
		       ? 0
		       : -ENOMEM;
}

/* A list of texts that an empty one ends (DWARF 2 to 4). */
static int read_old_list(struct lines *l, struct cursor *c, bool folders)
{
	for (;;) {
		struct line_file entry = {.path = {FORM_TEXT, cursor_at(c)}};
		int r;

		cursor_skip_text(c);
		if (c->error || cursor_at(c) - entry.path.value == 1)
			return c->error;
		if (!folders) {
			entry.folder = cursor_uleb(c);
			cursor_uleb(c); /* time */
			cursor_uleb(c); /* length */
		}
		r = add_entry(l, &entry, folders);
		if (r < 0)
			return r;
	}
}

struct column {
	uint64_t type;
	struct abbrev_attribute form;
};

static unsigned int read_columns(struct cursor *c, struct column *columns)
{
	unsigned int n = cursor_u8(c);

	if (n > MAX_FORMATS)
		cursor_fail(c, -ENOEXEC);
	for (unsigned int i = 0; i < n && !c->error; i++) {
		columns[i].type = cursor_uleb(c);
		columns[i].form = (struct abbrev_attribute){.form = (uint16_t)cursor_uleb(c)};
	}
	return n;
}

/* A list whose columns are said in front of it (DWARF 5). */
static int read_list(struct lines *l, struct cursor *c, bool folders)
{
	struct column columns[MAX_FORMATS];
	unsigned int n_columns = read_columns(c, columns);
	uint64_t n = cursor_uleb(c);

	/* Entries without columns take no bytes: nothing but `n` would end them. */
	if (n && !n_columns)
		return -ENOEXEC;
	for (uint64_t i = 0; i < n && !c->error; i++) {
		struct line_file entry = {.path = {FORM_NONE, 0}};
		int r;

		for (unsigned int k = 0; k < n_columns; k++) {
			struct form_value v = form_read(c, &columns[k].form, &l->format);

			if (columns[k].type == DW_LNCT_path)
				entry.path = v;
			else if (columns[k].type == DW_LNCT_directory_index)
				entry.folder = v.value;
		}
		r = add_entry(l, &entry, folders);
		if (r < 0)
			return r;
	}
	return c->error;
}

/* Lengths and version: where the program ends, and where *ret, the rest of the header, does. */
static int read_extent(struct program *p, uint64_t at, uint64_t *ret)
{
	struct lines *l = p->lines;
	struct cursor *c = p->c;
	uint64_t length;

	cursor_seek(c, at);
	p->end = cursor_unit_end(c, &l->format.offset_size);
	if (c->error)
		return -ENOEXEC;
	l->format.version = (uint8_t)cursor_number(c, 2);
	l->format.address_size = 8;
	if (l->format.version < 2 || l->format.version > 5)
		return -ENOTSUP;
	if (l->format.version >= 5)
		cursor_skip(c, 2);
	length = cursor_number(c, l->format.offset_size);
	if (c->error || length > p->end - cursor_at(c))
		return -ENOEXEC;
	*ret = cursor_at(c) + length;
	return 0;
}

static int read_header(struct program *p, uint64_t at)
{
	struct lines *l = p->lines;
	struct cursor *c = p->c;
	int (*read)(struct lines *, struct cursor *, bool);
	uint64_t end;
	int r = read_extent(p, at, &end);

	if (r < 0)
		return r;
	p->min_length = cursor_u8(c);
	p->max_ops = l->format.version >= 4 ? cursor_u8(c) : 1;
	cursor_u8(c);
	p->line_base = (int8_t)cursor_u8(c);
	p->line_range = cursor_u8(c);
	p->opcode_base = cursor_u8(c);
	if (c->error || !p->line_range || !p->opcode_base)
		return -ENOEXEC;
	for (unsigned int i = 1; i < p->opcode_base; i++)
		p->lengths[i] = cursor_u8(c);
	read = l->format.version < 5 ? read_old_list : read_list;
	r = read(l, c, true);
	if (r == 0)
		r = read(l, c, false);
	cursor_seek(c, end);
	return r;
}

/* --- The program --- */

static void restart(struct program *p)
{
	p->address = p->column = 0;
	p->file = p->line = 1;
	p->first = p->lines->rows.n;
}

static void advance(struct program *p, uint64_t operations)
{
	p->address += p->min_length * (p->max_ops > 1 ? operations / p->max_ops : operations);
}

static int add_row(struct program *p)
{
	struct line_row row = {
		.address = p->address,
		.line = p->line <= UINT32_MAX ? (uint32_t)p->line : 0,
		.file = p->file <= UINT16_MAX ? (uint16_t)p->file : 0,
		.column = p->column <= UINT16_MAX ? (uint16_t)p->column : 0,
	};
	struct lines *l = p->lines;
	struct line_row *last = l->rows.n > p->first ? &l->rows.p[l->rows.n - 1] : NULL;

	if (last && last->address == row.address) {
		*last = row;
		return 0;
	}
	if (last && last->line == row.line && last->file == row.file && last->column == row.column)
		return 0;
	if (l->rows.n >= p->max_rows)
		return -E2BIG;
	return vec_push(&l->rows, row) ? 0 : -ENOMEM;
}

/* What linkers have thrown away lies at 0 or at the end of all. */
static int end_sequence(struct program *p)
{
	struct lines *l = p->lines;
	struct line_sequence s = {.high = p->address,
				  .first = (uint32_t)p->first,
				  .n = (uint32_t)(l->rows.n - p->first)};

	check(p->first <= l->rows.n);
	s.low = s.n ? l->rows.p[p->first].address : 0;
	if (s.low && s.low < s.high && s.low < UINT64_MAX - 1) {
		if (!vec_push(&l->sequences, s))
			return -ENOMEM;
	} else {
		l->rows.n = p->first;
	}
	restart(p);
	return 0;
}

static int run_extended(struct program *p)
{
	uint64_t n = cursor_uleb(p->c), next = cursor_at(p->c) + n;
	int r = 0;

	if (n == 0)
		return 0;
	if (n > p->end || next > p->end)
		return -ENOEXEC;
	switch (cursor_u8(p->c)) {
	case DW_LNE_end_sequence:
		r = end_sequence(p);
		break;
	case DW_LNE_set_address:
		p->address = cursor_number(p->c, n == 9 ? 8 : 0);
		break;
	default:
		break;
	}
	if (p->c->error)
		return p->c->error;
	cursor_seek(p->c, next);
	return r;
}

static int run_standard(struct program *p, uint8_t opcode)
{
	switch (opcode) {
	case DW_LNS_copy:
		return add_row(p);
	case DW_LNS_advance_pc:
		advance(p, cursor_uleb(p->c));
		return 0;
	case DW_LNS_advance_line:
		p->line += (uint64_t)cursor_sleb(p->c);
		return 0;
	case DW_LNS_set_file:
		p->file = cursor_uleb(p->c);
		return 0;
	case DW_LNS_set_column:
		p->column = cursor_uleb(p->c);
		return 0;
	case DW_LNS_const_add_pc:
		advance(p, (255u - p->opcode_base) / p->line_range);
		return 0;
	case DW_LNS_fixed_advance_pc:
		p->address += cursor_number(p->c, 2);
		return 0;
	default:
		for (unsigned int i = 0; i < p->lengths[opcode]; i++)
			cursor_uleb(p->c);
		return 0;
	}
}

static int run_special(struct program *p, uint8_t opcode)
{
	unsigned int by = opcode - p->opcode_base;

	advance(p, by / p->line_range);
	p->line += (uint64_t)(int64_t)(p->line_base + (int)(by % p->line_range));
	return add_row(p);
}

static int run(struct program *p)
{
	restart(p);
	while (cursor_at(p->c) < p->end) {
		uint8_t opcode = cursor_u8(p->c);
		int r;

		if (*p->steps == 0)
			return -ETIME;
		--*p->steps;
		if (opcode >= p->opcode_base)
			r = run_special(p, opcode);
		else
			r = opcode ? run_standard(p, opcode) : run_extended(p);
		if (r < 0)
			return r;
		if (p->c->error)
			return p->c->error;
	}
	p->lines->rows.n = p->first;
	return 0;
}

static int by_low(const void *x, const void *y)
{
	const struct line_sequence *a = x, *b = y;

	return compare(a->low, b->low);
}

int lines_load(struct lines *ret, const struct unit *u, size_t max_rows, uint64_t *steps)
{
	struct lines l = {0};
	struct program p = {
		.lines = &l, .c = &u->main->c[DWARF_LINE], .max_rows = max_rows, .steps = steps};
	int r;

	if (!die_has(&u->root, DIE_STMT_LIST) || !dwarf_file_has(u->main, DWARF_LINE))
		return -ENOENT;
	r = read_header(&p, u->root.v[DIE_STMT_LIST].value);
	if (r == 0)
		r = run(&p);
	if (r < 0) {
		lines_free(&l);
		return r;
	}
	if (l.sequences.n)
		qsort(l.sequences.p, l.sequences.n, sizeof(*l.sequences.p), by_low);
	*ret = l;
	return 0;
}

/* --- Looking up --- */

static const struct line_row *row_of(const struct lines *l, const struct line_sequence *s,
				     uint64_t address)
{
	size_t before = search_partition(s->n, i, l->rows.p[s->first + i].address <= address);

	check((size_t)s->first + s->n <= l->rows.n);
	return before ? &l->rows.p[s->first + before - 1] : NULL;
}

const struct line_row *lines_find(const struct lines *l, uint64_t address)
{
	size_t low = search_partition(l->sequences.n, i, l->sequences.p[i].low <= address);

	/* Sequences may overlap; more than a few that do are nobody's. */
	for (size_t tries = 0; low && tries < 16; tries++, low--)
		if (address < l->sequences.p[low - 1].high)
			return row_of(l, &l->sequences.p[low - 1], address);
	return NULL;
}

/* Texts of the table itself lie in .debug_line. */
static int text_of(const struct unit *u, const struct form_value *v, struct buf *out)
{
	struct cursor *c = &u->main->c[DWARF_LINE];

	if (v->class != FORM_TEXT)
		return unit_text(u, v, out);
	cursor_seek(c, v->value);
	return cursor_text(c, DWARF_TEXT_MAX, out);
}

static bool absolute(const struct buf *b, size_t from)
{
	return b->n > from && b->p[from] == '/';
}

/* Puts the folder of the unit in front, where it has one. */
static int add_unit_folder(const struct unit *u, struct buf *out)
{
	int r = die_has(&u->root, DIE_COMP_DIR) ? unit_text(u, &u->root.v[DIE_COMP_DIR], out)
						: -ENOENT;

	if (r == -ENOENT)
		return 0;
	return r < 0 ? r : buf_putc(out, '/');
}

/* Appends a folder and what it is relative to, with a slash behind it. */
static int add_folder(const struct lines *l, const struct unit *u, uint64_t folder, struct buf *out)
{
	_cleanup_(buf_free) struct buf text = BUF_NULL;
	int r;

	if (l->format.version < 5 && folder-- == 0)
		return add_unit_folder(u, out);
	if (folder >= l->folders.n)
		return 0;
	r = text_of(u, &l->folders.p[folder], &text);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (!absolute(&text, 0))
		r = add_unit_folder(u, out);
	if (r == 0)
		r = buf_append(out, text.p, text.n);
	return r < 0 ? r : buf_putc(out, '/');
}

int lines_path(const struct lines *l, const struct unit *u, uint64_t file, struct buf *out)
{
	_cleanup_(buf_free) struct buf text = BUF_NULL;
	int r;

	if (l->format.version < 5 && file-- == 0)
		return -ENOENT;
	if (file >= l->files.n)
		return -ENOENT;
	r = text_of(u, &l->files.p[file].path, &text);
	if (r == 0 && !absolute(&text, 0))
		r = add_folder(l, u, l->files.p[file].folder, out);
	return r < 0 ? r : buf_append(out, text.p, text.n);
}

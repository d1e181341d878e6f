/* SPDX-License-Identifier: Apache-2.0 */
/* Split units. Contract in package.h. */
#include "dwarf/package.h"

#include "base/check.h"
#include "dwarf/dw.h"
#include "dwarf/unit.h"

#include <errno.h>

#define MAX_COLUMNS 16u

/* The index of a package: for each unit, what it has in which section. */
struct table {
	struct cursor *c;
	uint32_t version, n_columns, n_units, n_slots;
	uint64_t slots, rows, offsets;
	uint32_t columns[MAX_COLUMNS];
};

static int open_table(struct table *t, struct cursor *c)
{
	*t = (struct table){.c = c};
	cursor_seek(c, 0);
	t->version = (uint32_t)cursor_number(c, 4) & 0xffff;
	t->n_columns = (uint32_t)cursor_number(c, 4);
	t->n_units = (uint32_t)cursor_number(c, 4);
	t->n_slots = (uint32_t)cursor_number(c, 4);
	if (c->error || (t->version != 2 && t->version != 5) || t->n_columns > MAX_COLUMNS ||
	    t->n_slots > c->s.size / 12 || t->n_units > t->n_slots)
		return -ENOEXEC;
	t->slots = 16;
	t->rows = t->slots + (uint64_t)t->n_slots * 8;
	t->offsets = t->rows + (uint64_t)t->n_slots * 4 + (uint64_t)t->n_columns * 4;
	cursor_seek(c, t->rows + (uint64_t)t->n_slots * 4);
	for (unsigned int i = 0; i < t->n_columns; i++)
		t->columns[i] = (uint32_t)cursor_number(c, 4);
	return c->error;
}

/* The unit's share of the section; 0 where there is none. */
static uint64_t share(const struct table *t, uint32_t row, uint32_t section)
{
	check(row > 0 && t->n_columns <= MAX_COLUMNS);
	for (unsigned int i = 0; i < t->n_columns; i++)
		if (t->columns[i] == section) {
			cursor_seek(t->c,
				    t->offsets + ((uint64_t)(row - 1) * t->n_columns + i) * 4);
			return cursor_number(t->c, 4);
		}
	return 0;
}

static struct unit_head *find_head(struct dwarf_file *f, uint64_t offset)
{
	const struct unit_head *u = dwarf_file_unit(f, offset);

	return u && u->offset == offset ? &f->units.p[u - f->units.p] : NULL;
}

static void apply_row(struct dwarf_file *f, const struct table *t, uint32_t row, uint64_t id)
{
	struct unit_head *u = find_head(f, share(t, row, DW_SECT_INFO));

	if (!u)
		return;
	u->dwo_id = id;
	u->abbrevs += share(t, row, DW_SECT_ABBREV);
	u->str_offsets_base += share(t, row, DW_SECT_STR_OFFSETS);
	if (t->version == 5)
		u->rnglists_base += share(t, row, DW_SECT_RNGLISTS);
}

static int apply_table(struct dwarf_file *f)
{
	struct table t;
	int r = open_table(&t, &f->c[DWARF_CU_INDEX]);

	for (uint32_t i = 0; r == 0 && i < t.n_slots; i++) {
		uint64_t id;
		uint32_t row;

		cursor_seek(t.c, t.slots + (uint64_t)i * 8);
		id = cursor_number(t.c, 8);
		cursor_seek(t.c, t.rows + (uint64_t)i * 4);
		row = (uint32_t)cursor_number(t.c, 4);
		if (row && row <= t.n_units)
			apply_row(f, &t, row, id);
		r = t.c->error;
	}
	return r;
}

/* Before DWARF 5 the id is an attribute. */
static int read_ids(struct dwarf_file *f)
{
	vec_each (&f->units, head) {
		struct unit u;
		int r;

		if (head->format.version >= 5)
			continue;
		r = unit_open(&u, f, head, NULL);
		if (r == -ENOMEM)
			return r;
		head->dwo_id = r < 0 ? 0 : die_number(&u.root, DIE_DWO_ID);
	}
	return 0;
}

int package_apply(struct dwarf_file *f)
{
	vec_each (&f->units, u) {
		bool wide = u->format.offset_size == 8;

		u->str_offsets_base = u->format.version < 5 ? 0 : wide ? 16 : 8;
		u->rnglists_base = u->format.version < 5 ? 0 : wide ? 20 : 12;
	}
	return dwarf_file_has(f, DWARF_CU_INDEX) ? apply_table(f) : read_ids(f);
}

const struct unit_head *package_unit(const struct dwarf_file *f, uint64_t dwo_id)
{
	vec_each (&f->units, u)
		if (u->dwo_id == dwo_id)
			return u;
	return NULL;
}

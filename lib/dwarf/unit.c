/* SPDX-License-Identifier: Apache-2.0 */
/* What the values in a unit mean. Contract in unit.h. */
#include "dwarf/unit.h"

#include "base/check.h"
#include "dwarf/dw.h"

#include <errno.h>

static int open_lines(struct unit *u)
{
	u->root.present = 1u << DIE_STMT_LIST;
	u->root.v[DIE_STMT_LIST] = (struct form_value){FORM_NUMBER, u->head->offset};
	return 0;
}

static uint64_t base_of(const struct unit *u, enum die_slot slot, uint64_t otherwise)
{
	return die_has(&u->root, slot) ? die_number(&u->root, slot) : otherwise;
}

int unit_open(struct unit *u, struct dwarf_file *file, const struct unit_head *head,
	      struct dwarf_file *alt)
{
	struct cursor *c = &file->entry;
	struct abbrev_table t = {0};
	const struct abbrev *a;
	uint64_t code;
	int r;

	*u = (struct unit){.head = head, .file = file, .main = file, .alt = alt};
	if (head->type == DW_UT_lines)
		return open_lines(u);
	cursor_seek(c, head->root);
	code = cursor_uleb(c);
	if (c->error || !code)
		return c->error ? c->error : -ENOENT;
	/* The first entry's shape comes first; the rest may never be needed. */
	r = abbrev_load(&t, &file->c[DWARF_ABBREV], head->abbrevs, &head->format, code);
	a = r < 0 ? NULL : abbrev_find(&t, code);
	if (a)
		die_read(&u->root, c, &t, a, &head->format);
	abbrev_free(&t);
	if (r < 0 || !a || c->error)
		return r < 0 ? r : c->error ? c->error : -ENOEXEC;
	u->str_offsets_base = base_of(u, DIE_STR_OFFSETS_BASE, head->str_offsets_base);
	u->rnglists_base = base_of(u, DIE_RNGLISTS_BASE, head->rnglists_base);
	u->addr_base = die_number(&u->root, DIE_ADDR_BASE);
	u->ranges_base = die_number(&u->root, DIE_RANGES_BASE);
	if (die_has(&u->root, DIE_LOW_PC) &&
	    unit_address(u, &u->root.v[DIE_LOW_PC], &u->low) == -ENOMEM)
		return -ENOMEM;
	return 0;
}

void unit_join(struct unit *split, const struct unit *skeleton)
{
	split->main = skeleton->main;
	split->addr_base = skeleton->addr_base;
	split->ranges_base = skeleton->ranges_base;
	split->low = skeleton->low;
	split->root = skeleton->root;
}

static int text_at(struct dwarf_file *f, enum dwarf_section_id id, uint64_t at, struct buf *out)
{
	if (!f || !dwarf_file_has(f, id))
		return -ENOENT;
	cursor_seek(&f->c[id], at);
	return cursor_text(&f->c[id], DWARF_TEXT_MAX, out);
}

static int text_by_index(const struct unit *u, uint64_t i, struct buf *out)
{
	struct cursor *c = &u->file->c[DWARF_STR_OFFSETS];
	uint64_t at, size = u->head->format.offset_size;

	check(size == 4 || size == 8);
	if (i > c->s.size / size)
		return -ENOEXEC;
	cursor_seek(c, u->str_offsets_base + i * size);
	at = cursor_number(c, (unsigned int)size);
	return c->error ? c->error : text_at(u->file, DWARF_STR, at, out);
}

int unit_text(const struct unit *u, const struct form_value *v, struct buf *out)
{
	switch (v->class) {
	case FORM_TEXT:
		cursor_seek(&u->file->entry, v->value);
		return cursor_text(&u->file->entry, DWARF_TEXT_MAX, out);
	case FORM_STR:
		return text_at(u->file, DWARF_STR, v->value, out);
	case FORM_LINE_STR:
		return text_at(u->file, DWARF_LINE_STR, v->value, out);
	case FORM_STR_ALT:
		return text_at(u->alt, DWARF_STR, v->value, out);
	case FORM_STR_INDEX:
		return text_by_index(u, v->value, out);
	case FORM_NONE:
	case FORM_NUMBER:
	case FORM_ADDRESS:
	case FORM_ADDRESS_INDEX:
	case FORM_REF:
	case FORM_REF_FILE:
	case FORM_REF_ALT:
	case FORM_RANGES_INDEX:
	default:
		return -ENOENT;
	}
}

static int address_by_index(const struct unit *u, uint64_t i, uint64_t *ret)
{
	struct cursor *c = &u->main->c[DWARF_ADDR];

	if (i > c->s.size / 8)
		return -ENOEXEC;
	cursor_seek(c, u->addr_base + i * 8);
	*ret = cursor_number(c, 8);
	return c->error;
}

int unit_address(const struct unit *u, const struct form_value *v, uint64_t *ret)
{
	if (v->class == FORM_ADDRESS_INDEX)
		return address_by_index(u, v->value, ret);
	if (v->class != FORM_ADDRESS)
		return -ENOENT;
	*ret = v->value;
	return 0;
}

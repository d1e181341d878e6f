/* SPDX-License-Identifier: Apache-2.0 */
/* Names of functions. Contract in names.h. */
#include "dwarf/names.h"

#include <errno.h>

#define MAX_HOPS 16

/* Makes *u the unit that `ref` leads into, and *ret the entry's offset. */
static int follow(struct unit *u, const struct form_value *ref, uint64_t *ret)
{
	struct dwarf_file *file = ref->class == FORM_REF_ALT ? u->alt : u->file;
	const struct unit_head *head;
	uint64_t at = ref->value;

	if (ref->class != FORM_REF && ref->class != FORM_REF_FILE && ref->class != FORM_REF_ALT)
		return -ENOENT;
	if (!file)
		return -ENOENT;
	if (ref->class == FORM_REF)
		at += u->head->offset;
	head = file == u->file && at >= u->head->offset && at < u->head->end
		       ? u->head
		       : dwarf_file_unit(file, at);
	if (!head)
		return -ENOEXEC;
	if (head != u->head)
		*u = (struct unit){.head = head,
				   .file = file,
				   .main = file,
				   .alt = file == u->alt ? NULL : u->alt};
	*ret = at;
	return 0;
}

static int read_entry(const struct unit *u, uint64_t at, struct die *d)
{
	struct cursor *c = &u->file->entry;
	const struct abbrev_table *t;
	const struct abbrev *a;
	int r = dwarf_file_abbrevs(u->file, u->head, &t);

	if (r < 0)
		return r;
	cursor_seek(c, at);
	a = abbrev_find(t, cursor_uleb(c));
	if (!a)
		return c->error ? c->error : -ENOEXEC;
	die_read(d, c, t, a, &u->head->format);
	return c->error;
}

/* A text by index needs what the unit's first entry says. */
static int read_text(struct unit *u, const struct form_value *v, struct buf *out)
{
	if (v->class == FORM_STR_INDEX && !u->root.present) {
		int r = unit_open(u, u->file, u->head, u->alt);

		if (r < 0)
			return r;
	}
	buf_clear(out);
	return unit_text(u, v, out);
}

/* Takes what an entry says: 1 where that is the best there can be. */
static int take(struct unit *u, const struct die *d, struct dwarf_name *ret)
{
	int r;

	if (!ret->line)
		ret->line = (uint32_t)die_number(d, DIE_DECL_LINE);
	if (die_has(d, DIE_LINKAGE_NAME)) {
		r = read_text(u, &d->v[DIE_LINKAGE_NAME], &ret->text);
		ret->linked = r == 0;
		return r == 0 ? 1 : r;
	}
	if (die_has(d, DIE_NAME) && ret->text.n == 0)
		return read_text(u, &d->v[DIE_NAME], &ret->text);
	return 0;
}

int dwarf_name_read(const struct unit *u, const struct form_value *from, struct dwarf_name *ret)
{
	struct form_value ref = *from;
	struct unit at = *u;

	buf_clear(&ret->text);
	ret->linked = false;
	ret->line = 0;
	for (unsigned int hops = 0; hops < MAX_HOPS; hops++) {
		uint64_t entry;
		struct die d;
		int r = follow(&at, &ref, &entry);

		if (r == 0)
			r = read_entry(&at, entry, &d);
		if (r == 0)
			r = take(&at, &d, ret);
		if (r < 0)
			return ret->text.n && r != -ENOMEM ? 0 : r;
		if (r == 1)
			return 0;
		if (die_has(&d, DIE_ORIGIN))
			ref = d.v[DIE_ORIGIN];
		else if (die_has(&d, DIE_SPECIFICATION))
			ref = d.v[DIE_SPECIFICATION];
		else
			break;
	}
	return ret->text.n ? 0 : -ENOENT;
}

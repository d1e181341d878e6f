/* SPDX-License-Identifier: Apache-2.0 */
/* Where an entry's code is: a pair of addresses, a list of .debug_ranges (DWARF 2 to 4), or one of
 * .debug_rnglists (5, section 7.25). */
#include "dwarf/dw.h"
#include "base/check.h"
#include "dwarf/unit.h"

#include <errno.h>

/* Ranges that linkers have thrown away begin at 0 or at the end of all. */
static int add(struct spans *s, uint64_t low, uint64_t high, size_t max)
{
	if (low == 0 || low >= high || low >= UINT64_MAX - 1)
		return 0;
	if (s->list.n >= max)
		return -E2BIG;
	return vec_push(&s->list, ((struct span){low, high})) ? 0 : -ENOMEM;
}

static int read_ranges(const struct unit *u, uint64_t at, size_t max, struct spans *s)
{
	struct cursor *c = &u->main->c[DWARF_RANGES];
	uint64_t base = u->low;
	int r = 0;

	cursor_seek(c, at);
	while (r == 0) {
		uint64_t low = cursor_number(c, 8), high = cursor_number(c, 8);

		if (c->error || (!low && !high))
			break;
		if (low == UINT64_MAX)
			base = high;
		else
			r = add(s, base + low, base + high, max);
	}
	return r < 0 ? r : c->error;
}

static int indexed(const struct unit *u, uint64_t i, uint64_t *ret)
{
	const struct form_value v = {FORM_ADDRESS_INDEX, i};

	return unit_address(u, &v, ret);
}

struct list {
	const struct unit *u;
	struct cursor *c;
	uint64_t base, low, high;
};

/* One item: 1 where it is a range, 0 where it changed the base, -ENOENT at the end. */
static int next_item(struct list *l)
{
	int r = 0;

	switch (cursor_u8(l->c)) {
	case DW_RLE_base_addressx:
		r = indexed(l->u, cursor_uleb(l->c), &l->base);
		return r < 0 ? r : 0;
	case DW_RLE_base_address:
		l->base = cursor_number(l->c, 8);
		return 0;
	case DW_RLE_startx_endx:
		r = indexed(l->u, cursor_uleb(l->c), &l->low);
		if (r == 0)
			r = indexed(l->u, cursor_uleb(l->c), &l->high);
		return r < 0 ? r : 1;
	case DW_RLE_startx_length:
		r = indexed(l->u, cursor_uleb(l->c), &l->low);
		l->high = l->low + cursor_uleb(l->c);
		return r < 0 ? r : 1;
	case DW_RLE_offset_pair:
		l->low = l->base + cursor_uleb(l->c);
		l->high = l->base + cursor_uleb(l->c);
		return 1;
	case DW_RLE_start_end:
		l->low = cursor_number(l->c, 8);
		l->high = cursor_number(l->c, 8);
		return 1;
	case DW_RLE_start_length:
		l->low = cursor_number(l->c, 8);
		l->high = l->low + cursor_uleb(l->c);
		return 1;
	default:
		return -ENOENT;
	}
}

static int read_rnglist(const struct unit *u, uint64_t at, size_t max, struct spans *s)
{
	struct list l = {.u = u, .c = &u->file->c[DWARF_RNGLISTS], .base = u->low};
	int r = 0;

	cursor_seek(l.c, at);
	while (r >= 0 && !l.c->error) {
		r = next_item(&l);
		if (r == 1)
			r = add(s, l.low, l.high, max);
	}
	return l.c->error ? l.c->error : r == -ENOENT ? 0 : r;
}

/* The list that entry i of the unit's table of offsets points to. */
static int read_indexed(const struct unit *u, uint64_t i, size_t max, struct spans *s)
{
	struct cursor *c = &u->file->c[DWARF_RNGLISTS];
	uint64_t size = u->head->format.offset_size, at;

	check(size == 4 || size == 8);
	if (i > c->s.size / size)
		return -ENOEXEC;
	cursor_seek(c, u->rnglists_base + i * size);
	at = cursor_number(c, (unsigned int)size);
	return c->error ? c->error : read_rnglist(u, u->rnglists_base + at, max, s);
}

static int read_list(const struct unit *u, const struct form_value *v, size_t max, struct spans *s)
{
	if (v->class == FORM_RANGES_INDEX)
		return read_indexed(u, v->value, max, s);
	if (v->class != FORM_NUMBER)
		return -ENOEXEC;
	if (u->head->format.version >= 5)
		return read_rnglist(u, v->value, max, s);
	/* The base is for split units; a skeleton's own list is in place. */
	return read_ranges(u, v->value + (u->file != u->main ? u->ranges_base : 0), max, s);
}

int unit_ranges(const struct unit *u, const struct die *d, size_t max, struct spans *ret)
{
	uint64_t low, high;
	int r;

	ret->list.n = 0;
	if (die_has(d, DIE_RANGES))
		return read_list(u, &d->v[DIE_RANGES], max, ret);
	if (!die_has(d, DIE_LOW_PC) || !die_has(d, DIE_HIGH_PC))
		return 0;
	r = unit_address(u, &d->v[DIE_LOW_PC], &low);
	if (r < 0)
		return r;
	r = unit_address(u, &d->v[DIE_HIGH_PC], &high);
	if (r == -ENOENT) {
		high = low + d->v[DIE_HIGH_PC].value;
		r = 0;
	}
	return r < 0 ? r : add(ret, low, high, max);
}

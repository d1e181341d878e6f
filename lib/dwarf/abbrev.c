/* SPDX-License-Identifier: Apache-2.0 */
/* The shapes of entries. Contract in abbrev.h. */
#include "dwarf/abbrev.h"

#include "base/check.h"
#include "base/search.h"
#include "dwarf/dw.h"
#include "dwarf/form.h"

#include <errno.h>
#include <stdlib.h>

void abbrev_free(struct abbrev_table *t)
{
	vec_free(&t->shapes);
	vec_free(&t->attributes);
}

size_t abbrev_bytes(const struct abbrev_table *t)
{
	return t->shapes.capacity * sizeof(*t->shapes.p) +
	       t->attributes.capacity * sizeof(*t->attributes.p);
}

/* The attributes of a shape, up to the pair of zeros. */
static int load_attributes(struct abbrev_table *t, struct cursor *c, struct abbrev *a,
			   const struct dwarf_format *format)
{
	unsigned int size = 0;

	a->first = (uint32_t)t->attributes.n;
	for (;;) {
		uint64_t name = cursor_uleb(c), form = cursor_uleb(c);
		struct abbrev_attribute attribute = {(uint16_t)name, (uint16_t)form, 0};
		int fixed;

		if (c->error)
			return c->error;
		if (!name && !form)
			break;
		if (name > UINT16_MAX || form > UINT16_MAX)
			return -ENOEXEC;
		if (form == DW_FORM_implicit_const)
			attribute.constant = cursor_sleb(c);
		if (t->attributes.n >= ABBREV_MAX_ATTRIBUTES || a->n == UINT16_MAX)
			return -E2BIG;
		if (!vec_push(&t->attributes, attribute))
			return -ENOMEM;
		a->n++;
		fixed = form_fixed_size(attribute.form, format);
		size = fixed < 0 || size + (unsigned int)fixed >= ABBREV_VARIABLE
			       ? ABBREV_VARIABLE
			       : size + (unsigned int)fixed;
	}
	check(size <= ABBREV_VARIABLE && a->first + a->n == t->attributes.n);
	a->fixed_size = (uint16_t)size;
	return 0;
}

static int by_code(const void *x, const void *y)
{
	const struct abbrev *a = x, *b = y;

	return compare(a->code, b->code);
}

static int load(struct abbrev_table *t, struct cursor *c, const struct dwarf_format *format,
		uint64_t only)
{
	bool sorted = true;

	for (;;) {
		struct abbrev a = {.code = cursor_uleb(c)};
		uint64_t tag;
		int r;

		if (c->error || !a.code)
			break;
		tag = cursor_uleb(c);
		a.tag = (uint16_t)(tag > UINT16_MAX ? UINT16_MAX : tag);
		a.children = cursor_u8(c);
		r = load_attributes(t, c, &a, format);
		if (r < 0)
			return r;
		if (t->shapes.n >= ABBREV_MAX_SHAPES)
			return -E2BIG;
		if (t->shapes.n && a.code <= t->shapes.p[t->shapes.n - 1].code)
			sorted = false;
		if (!vec_push(&t->shapes, a))
			return -ENOMEM;
		if (only && a.code == only)
			break;
	}
	if (!sorted)
		qsort(t->shapes.p, t->shapes.n, sizeof(*t->shapes.p), by_code);
	return c->error;
}

int abbrev_load(struct abbrev_table *ret, struct cursor *c, uint64_t at,
		const struct dwarf_format *format, uint64_t only)
{
	struct abbrev_table t = {0};
	int r;

	cursor_seek(c, at);
	r = load(&t, c, format, only);
	if (r < 0) {
		abbrev_free(&t);
		return r;
	}
	*ret = t;
	return 0;
}

const struct abbrev *abbrev_find(const struct abbrev_table *t, uint64_t code)
{
	const struct abbrev key = {.code = code};

	if (code - 1 < t->shapes.n && t->shapes.p[code - 1].code == code)
		return &t->shapes.p[code - 1];
	return t->shapes.n ? bsearch(&key, t->shapes.p, t->shapes.n, sizeof(*t->shapes.p), by_code)
			   : NULL;
}

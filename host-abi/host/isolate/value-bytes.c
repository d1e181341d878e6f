/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in value-bytes.h. Each value is its numbers, its two texts, and then its items, each
 * behind its key in a MAP. */
#include "host/isolate/value-bytes.h"

#include <errno.h>
#include <string.h>

#define MAX_DEPTH 128 /* the language nests less */

struct numbers {
	uint32_t kind, flags, line, column;
	int64_t integer;
	double number;
	uint64_t n_items;
};

static void put_str(struct buf *b, const char *p, uint64_t n)
{
	buf_append(b, &n, sizeof(n));
	buf_append(b, p, n);
}

void value_bytes_put(struct buf *b, const struct andiron_value *value)
{
	const struct numbers n = {value->kind,    value->flags,  value->line,   value->column,
				  value->integer, value->number, value->n_items};

	buf_append(b, &n, sizeof(n));
	put_str(b, value->string.ptr, value->string.len);
	put_str(b, value->file, value->file ? strlen(value->file) : 0);
	for (uint64_t i = 0; i < value->n_items && !b->failed; i++) {
		if (value->kind == ANDIRON_VALUE_MAP)
			put_str(b, value->keys[i].ptr, value->keys[i].len);
		value_bytes_put(b, &value->items[i]);
	}
}

static int get(struct str *rest, void *ret, size_t n)
{
	if (rest->n < n)
		return -EBADMSG;
	memcpy(ret, rest->p, n);
	*rest = str_skip(*rest, n);
	return 0;
}

static int get_str(struct str *rest, struct arena *arena, struct andiron_str *ret)
{
	struct str copy;
	uint64_t n;

	if (get(rest, &n, sizeof(n)) < 0 || n > rest->n)
		return -EBADMSG;
	copy = arena_str(arena, str_first(*rest, n));
	if (!copy.p)
		return -ENOMEM;
	*rest = str_skip(*rest, n);
	*ret = (struct andiron_str){copy.p, copy.n};
	return 0;
}

static int get_value(struct str *rest, struct arena *arena, int depth, struct andiron_value *ret);

static int get_items(struct str *rest, struct arena *arena, int depth, struct andiron_value *v)
{
	bool is_map = v->kind == ANDIRON_VALUE_MAP;
	struct andiron_str *keys;
	struct andiron_value *items;
	int r = 0;

	/* Each takes that much at least. */
	if (v->n_items > rest->n / sizeof(struct numbers) || depth >= MAX_DEPTH)
		return -EBADMSG;
	keys = arena_array(arena, struct andiron_str, v->n_items + 1);
	items = arena_array(arena, struct andiron_value, v->n_items + 1);
	if (!keys || !items)
		return -ENOMEM;
	for (uint64_t i = 0; i < v->n_items && r == 0; i++) {
		if (is_map)
			r = get_str(rest, arena, &keys[i]);
		if (r == 0)
			r = get_value(rest, arena, depth + 1, &items[i]);
	}
	v->keys = keys;
	v->items = items;
	return r;
}

static int get_value(struct str *rest, struct arena *arena, int depth, struct andiron_value *ret)
{
	struct andiron_str file = {0};
	struct numbers n;
	int r = get(rest, &n, sizeof(n));

	if (r < 0)
		return r;
	*ret = (struct andiron_value){.kind = n.kind,
				      .flags = n.flags,
				      .line = n.line,
				      .column = n.column,
				      .integer = n.integer,
				      .number = n.number,
				      .n_items = n.n_items};
	r = get_str(rest, arena, &ret->string);
	if (r == 0)
		r = get_str(rest, arena, &file);
	ret->file = file.len ? file.ptr : NULL;
	return r < 0 ? r : get_items(rest, arena, depth, ret);
}

int value_bytes_get(struct str bytes, struct arena *arena, struct andiron_value *ret)
{
	int r = get_value(&bytes, arena, 0, ret);

	return r == 0 && bytes.n ? -EBADMSG : r;
}

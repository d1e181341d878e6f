/* SPDX-License-Identifier: Apache-2.0 */
/* See msgpack.h. */
#include "agents/fluent-bit/msgpack.h"

#include <errno.h>

static bool take(struct str *in, size_t n, struct str *ret)
{
	if (in->n < n)
		return false;
	*ret = str_first(*in, n);
	*in = str_skip(*in, n);
	return true;
}

/* Big-endian. */
static bool take_number(struct str *in, size_t bytes, uint64_t *ret)
{
	struct str digits;
	uint64_t value = 0;

	if (!take(in, bytes, &digits))
		return false;
	for (size_t i = 0; i < bytes; i++)
		value = value << 8 | (unsigned char)digits.p[i];
	*ret = value;
	return true;
}

static bool take_text(struct str *in, size_t bytes, size_t more, struct token *t)
{
	uint64_t n;

	if (!take_number(in, bytes, &n) || n > in->n)
		return false;
	return take(in, n + more, &t->text);
}

static bool take_entries(struct str *in, size_t bytes, enum token_kind kind, struct token *t)
{
	t->kind = kind;
	return take_number(in, bytes, &t->entries) && t->entries <= in->n;
}

static bool take_signed(struct str *in, size_t bytes, struct token *t)
{
	unsigned int unused = 64 - 8 * (unsigned int)bytes;

	t->kind = TOKEN_NUMBER;
	if (!take_number(in, bytes, &t->number))
		return false;
	t->number = (uint64_t)((int64_t)(t->number << unused) >> unused);
	return true;
}

enum reader { NOTHING, TRUTH, TEXT, EXTENSION, UNSIGNED, SIGNED, FIXED, ENTRIES };

/* 0xc0 to 0xdf: what follows, and how long it, or its length, is. */
static const struct {
	unsigned char reader, bytes, kind;
} typed[32] = {
	[0x00] = {NOTHING, 0, TOKEN_OTHER},
	[0x02] = {TRUTH, 0, TOKEN_NUMBER},
	[0x03] = {TRUTH, 1, TOKEN_NUMBER},
	[0x04] = {TEXT, 1, TOKEN_TEXT},
	[0x05] = {TEXT, 2, TOKEN_TEXT},
	[0x06] = {TEXT, 4, TOKEN_TEXT},
	[0x07] = {EXTENSION, 1, 0},
	[0x08] = {EXTENSION, 2, 0},
	[0x09] = {EXTENSION, 4, 0},
	[0x0a] = {FIXED, 4, 0},
	[0x0b] = {FIXED, 8, 0},
	[0x0c] = {UNSIGNED, 1, TOKEN_NUMBER},
	[0x0d] = {UNSIGNED, 2, TOKEN_NUMBER},
	[0x0e] = {UNSIGNED, 4, TOKEN_NUMBER},
	[0x0f] = {UNSIGNED, 8, TOKEN_NUMBER},
	[0x10] = {SIGNED, 1, TOKEN_NUMBER},
	[0x11] = {SIGNED, 2, TOKEN_NUMBER},
	[0x12] = {SIGNED, 4, TOKEN_NUMBER},
	[0x13] = {SIGNED, 8, TOKEN_NUMBER},
	[0x14] = {FIXED, 2, 0},
	[0x15] = {FIXED, 3, 0},
	[0x16] = {FIXED, 5, 0},
	[0x17] = {FIXED, 9, 0},
	[0x18] = {FIXED, 17, 0},
	[0x19] = {TEXT, 1, TOKEN_TEXT},
	[0x1a] = {TEXT, 2, TOKEN_TEXT},
	[0x1b] = {TEXT, 4, TOKEN_TEXT},
	[0x1c] = {ENTRIES, 2, TOKEN_ARRAY},
	[0x1d] = {ENTRIES, 4, TOKEN_ARRAY},
	[0x1e] = {ENTRIES, 2, TOKEN_MAP},
	[0x1f] = {ENTRIES, 4, TOKEN_MAP},
};

static bool take_typed(struct str *in, unsigned int type, struct token *t)
{
	size_t bytes = typed[type - 0xc0].bytes;
	struct str unread;

	t->kind = typed[type - 0xc0].kind;
	switch (typed[type - 0xc0].reader) {
	case TRUTH:
		t->number = bytes;
		return true;
	case TEXT:
		return take_text(in, bytes, 0, t);
	case EXTENSION:
		return take_text(in, bytes, 1, t);
	case UNSIGNED:
		return take_number(in, bytes, &t->number);
	case SIGNED:
		return take_signed(in, bytes, t);
	case FIXED:
		return take(in, bytes, &unread);
	case ENTRIES:
		return take_entries(in, bytes, t->kind, t);
	default:
		return type == 0xc0;
	}
}

bool msgpack_next(struct str *in, struct token *ret)
{
	unsigned int type;
	struct str first;

	*ret = (struct token){0};
	if (!take(in, 1, &first))
		return false;
	type = (unsigned char)first.p[0];
	if (type < 0x80 || type >= 0xe0) {
		ret->kind = TOKEN_NUMBER;
		ret->number = (uint64_t)(int64_t)(signed char)type;
		return true;
	}
	if (type < 0xa0) {
		ret->kind = type < 0x90 ? TOKEN_MAP : TOKEN_ARRAY;
		ret->entries = type & 0x0f;
		return ret->entries <= in->n;
	}
	if (type < 0xc0) {
		ret->kind = TOKEN_TEXT;
		return take(in, type & 0x1f, &ret->text);
	}
	return take_typed(in, type, ret);
}

bool msgpack_skip(struct str *in)
{
	uint64_t left = 1;
	struct token t;

	while (left > 0) {
		if (!msgpack_next(in, &t))
			return false;
		left += t.kind == TOKEN_MAP ? 2 * t.entries : t.entries;
		if (--left > in->n) /* each takes a byte at least */
			return false;
	}
	return true;
}

int msgpack_find(struct str map, struct str key, struct str *ret)
{
	struct token t;
	uint64_t n;

	if (!msgpack_next(&map, &t) || t.kind != TOKEN_MAP)
		return -EBADMSG;
	for (n = t.entries; n > 0; n--) {
		if (!msgpack_next(&map, &t) || t.kind != TOKEN_TEXT)
			return -EBADMSG;
		if (str_eq(t.text, key)) {
			*ret = map;
			return 1;
		}
		if (!msgpack_skip(&map))
			return -EBADMSG;
	}
	return 0;
}

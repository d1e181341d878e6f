/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a section onwards. Contract in cursor.h. */
#include "dwarf/cursor.h"

#include "base/check.h"
#include "base/file.h"

#include <errno.h>
#include <stdlib.h>

void cursor_init(struct cursor *c, const struct dwarf_section *s, size_t piece)
{
	check(piece >= 64);
	*c = (struct cursor){.s = *s, .piece = piece};
}

void cursor_fini(struct cursor *c)
{
	free(c->bytes);
	c->bytes = NULL;
	c->p = c->end = NULL;
}

void cursor_fail(struct cursor *c, int error)
{
	if (!c->error)
		c->error = error;
	c->after = cursor_at(c);
	c->p = c->end = c->bytes;
}

/* Reads the piece at `at`; false where there is none. */
static bool fill(struct cursor *c, uint64_t at)
{
	uint64_t left = at < c->s.size ? c->s.size - at : 0;
	size_t n = left < c->piece ? (size_t)left : c->piece;
	int r = n ? 0 : -ENOEXEC;

	if (c->error)
		return false;
	if (r == 0 && !c->bytes) {
		c->bytes = malloc(c->piece);
		r = c->bytes ? 0 : -ENOMEM;
	}
	if (r == 0)
		r = file_pread(c->s.fd, c->bytes, n, c->s.base + at);
	c->p = c->end = c->bytes;
	c->after = at;
	if (r < 0) {
		cursor_fail(c, r);
		return false;
	}
	c->end += n;
	c->after += n;
	check(c->after <= c->s.size);
	return true;
}

void cursor_seek(struct cursor *c, uint64_t at)
{
	uint64_t start = c->after - (uint64_t)(c->end - c->bytes);

	c->error = 0;
	if (c->bytes && at >= start && at <= c->after && c->after > start) {
		c->p = c->bytes + (at - start);
		return;
	}
	c->p = c->end = c->bytes;
	c->after = at;
}

void cursor_skip(struct cursor *c, uint64_t n)
{
	uint64_t at = cursor_at(c);

	if (n <= (uint64_t)(c->end - c->p)) {
		c->p += n;
	} else if (n > c->s.size || at > c->s.size - n) {
		cursor_fail(c, -ENOEXEC);
	} else {
		c->after = at + n;
		c->p = c->end = c->bytes;
	}
}

uint64_t cursor_number(struct cursor *c, unsigned int n)
{
	uint64_t value = 0;

	check(n <= 8);
	if ((size_t)(c->end - c->p) >= n) {
		if (n)
			memcpy(&value, c->p, n);
		c->p += n;
		return value;
	}
	for (unsigned int i = 0; i < n; i++) {
		if (c->p == c->end && !fill(c, cursor_at(c)))
			return 0;
		value |= (uint64_t)*c->p++ << (8 * i);
	}
	return value;
}

static uint64_t leb(struct cursor *c, bool is_signed)
{
	uint64_t value = 0;
	unsigned int shift = 0;
	uint8_t byte;

	do {
		byte = cursor_u8(c);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (is_signed && (byte & 0x40) && shift < 64)
		value |= UINT64_MAX << shift;
	return value;
}

uint64_t cursor_uleb(struct cursor *c)
{
	return leb(c, false);
}

int64_t cursor_sleb(struct cursor *c)
{
	return (int64_t)leb(c, true);
}

uint64_t cursor_unit_end(struct cursor *c, uint8_t *ret_offset_size)
{
	uint64_t n = cursor_number(c, 4);

	*ret_offset_size = n == UINT32_MAX ? 8 : 4;
	if (n == UINT32_MAX)
		n = cursor_number(c, 8);
	if (!c->error && n > c->s.size - cursor_at(c))
		cursor_fail(c, -ENOEXEC);
	return c->error ? 0 : cursor_at(c) + n;
}

void cursor_skip_text(struct cursor *c)
{
	for (;;) {
		const unsigned char *nul = c->end > c->p ? memchr(c->p, 0, (size_t)(c->end - c->p))
							 : NULL;

		if (nul) {
			c->p = nul + 1;
			return;
		}
		if (!fill(c, c->after))
			return;
	}
}

int cursor_text(struct cursor *c, size_t max, struct buf *out)
{
	while (max) {
		size_t n, left;

		if (c->p == c->end && !fill(c, c->after))
			return c->error;
		left = (size_t)(c->end - c->p);
		left = left < max ? left : max;
		n = strnlen((const char *)c->p, left);
		if (buf_append(out, c->p, n) < 0)
			return -ENOMEM;
		c->p += n;
		max -= n;
		if (n < left)
			return 0;
	}
	return 0;
}

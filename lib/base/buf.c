/* SPDX-License-Identifier: Apache-2.0 */
/* What grows: byte buffers, and arrays of any type. Contracts in buf.h and vec.h. */
#include "base/buf.h"

#include "base/ascii.h"
#include "base/check.h"
#include "base/vec.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define DEFAULT_LIMIT ((size_t)1 << 30)

void buf_free(struct buf *b)
{
	free(b->p);
	*b = (struct buf){.limit = b->limit};
}

/* Room for n more bytes and buf_take's NUL: 0; or -E2BIG or -ENOMEM, and `failed` is set. */
static int grow(struct buf *b, size_t n)
{
	size_t limit = b->limit ? b->limit : DEFAULT_LIMIT;
	size_t need, capacity = b->capacity ? b->capacity : 64;
	char *p;

	if (n > limit || b->n > limit - n) {
		b->failed = true;
		return -E2BIG;
	}
	need = b->n + n + 1;
	if (need <= b->capacity)
		return 0;
	while (capacity < need)
		capacity *= 2;
	p = realloc(b->p, capacity);
	if (!p) {
		b->failed = true;
		return -ENOMEM;
	}
	b->p = p;
	b->capacity = capacity;
	return 0;
}

char *buf_reserve(struct buf *b, size_t n)
{
	return grow(b, n) < 0 ? NULL : b->p + b->n;
}

int buf_append(struct buf *b, const void *data, size_t n)
{
	int r = grow(b, n);

	if (r < 0)
		return r;
	if (n)
		memcpy(b->p + b->n, data, n);
	b->n += n;
	return 0;
}

int buf_str_append(struct buf *b, struct str s)
{
	return buf_append(b, s.p, s.n);
}

int buf_putc(struct buf *b, char c)
{
	return buf_append(b, &c, 1);
}

int buf_printf(struct buf *b, const char *format, ...)
{
	va_list args;
	int n, r;

	va_start(args, format);
	n = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (n < 0)
		return -EINVAL;
	r = grow(b, (size_t)n);
	if (r < 0)
		return r;
	check(b->n + (size_t)n < b->capacity);
	va_start(args, format);
	vsnprintf(b->p + b->n, (size_t)n + 1, format, args);
	va_end(args);
	b->n += (size_t)n;
	return 0;
}

char *buf_take(struct buf *b)
{
	char *p = NULL;

	if (!b->failed && buf_reserve(b, 0)) {
		check(b->n < b->capacity);
		p = b->p;
		p[b->n] = '\0';
		b->p = NULL;
	}
	buf_free(b);
	return p;
}

void buf_percent_append(struct buf *b, struct str text, const char *also)
{
	for (size_t i = 0; i < text.n && !b->failed; i++) {
		unsigned char c = (unsigned char)text.p[i];

		if (ascii_is_alnum(c) || (c && (strchr("-._~", c) || strchr(also, c))))
			buf_putc(b, (char)c);
		else
			buf_printf(b, "%%%02X", c);
	}
}

void buf_base64_append(struct buf *b, struct str bytes, const char *digits)
{
	for (size_t i = 0; i < bytes.n && !b->failed; i += 3) {
		uint32_t bits = 0;

		for (size_t j = 0; j < 3; j++)
			bits = bits << 8 | (i + j < bytes.n ? (unsigned char)bytes.p[i + j] : 0);
		for (size_t j = 0; j < 4; j++)
			buf_putc(b, i + j > bytes.n ? '=' : digits[bits >> (18 - 6 * j) & 63]);
	}
}

static int base64_value(char c, const char *digits)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == digits[62] ? 62 : c == digits[63] ? 63 : -1;
}

ssize_t base64_decode(char *out, struct str text, const char *digits, bool padded)
{
	uint32_t bits = 0;
	size_t n = 0, n_digits = 0, n_pads = 0;

	for (size_t i = 0; i < text.n; i++) {
		int value = base64_value(text.p[i], digits);

		if (text.p[i] == '\n' || text.p[i] == '\r')
			continue;
		if (text.p[i] == '=') {
			n_pads++;
			continue;
		}
		if (value < 0 || n_pads)
			return -1;
		bits = bits << 6 | (uint32_t)value;
		if (n_digits++ % 4)
			out[n++] = (char)(bits >> (6 - 2 * ((n_digits - 1) % 4)));
	}
	if (n_digits % 4 == 1 || n_pads > 2 || ((padded || n_pads) && (n_digits + n_pads) % 4))
		return -1;
	return (ssize_t)n;
}

bool vec_grow(void **p, size_t *capacity, size_t need, size_t size)
{
	size_t grown = *capacity ? *capacity : 8;
	void *moved;

	if (need <= *capacity)
		return true;
	check(size > 0);
	while (grown < need)
		if (__builtin_mul_overflow(grown, 2, &grown))
			return false;
	if (grown > SIZE_MAX / size)
		return false;
	moved = realloc(*p, grown * size);
	if (!moved)
		return false;
	*p = moved;
	*capacity = grown;
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* One decoder for each encoding and one encoder. A cut never goes through a character, since the
 * sampler would take the whole name for no text. */
#include "runtime-kit/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define REPLACEMENT 0xfffdu
#define HALF        0xffffffffu /* the source ends within a character */

static const char ellipsis[3] = {'\xe2', '\x80', '\xa6'};

struct source {
	const unsigned char *at, *end;
	enum text_encoding encoding;
};

static uint32_t next_unit(struct source *s, size_t width)
{
	uint32_t c = 0;
	uint16_t half;

	if ((size_t)(s->end - s->at) < width) {
		s->at = s->end;
		return HALF;
	}
	if (width == 2) {
		memcpy(&half, s->at, 2);
		c = half;
	} else if (width == 4) {
		memcpy(&c, s->at, 4);
	} else {
		c = *s->at;
	}
	s->at += width;
	return c;
}

/* A character of one to four bytes. Java's surrogates and its NUL pass. */
static uint32_t next_bytes(struct source *s)
{
	static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
	uint32_t c = *s->at++, more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;

	if (c < 0x80)
		return c;
	if (c < 0xc0 || c > 0xf4)
		return REPLACEMENT;
	c &= 0x3fu >> more;
	for (uint32_t i = 0; i < more; i++) {
		if (s->at == s->end)
			return HALF;
		if ((*s->at & 0xc0) != 0x80)
			return REPLACEMENT;
		c = c << 6 | (*s->at++ & 0x3fu);
	}
	return c >= least[more] || (s->encoding == TEXT_JAVA && c == 0) ? c : REPLACEMENT;
}

static uint32_t next_raw(struct source *s)
{
	switch (s->encoding) {
	case TEXT_LATIN1:
		return next_unit(s, 1);
	case TEXT_UTF16:
		return next_unit(s, 2);
	case TEXT_UCS4:
		return next_unit(s, 4);
	case TEXT_UTF8:
	case TEXT_JAVA:
	default:
		return next_bytes(s);
	}
}

/* A character that may be written, or HALF. */
static uint32_t next(struct source *s)
{
	uint32_t c = next_raw(s), low;
	struct source behind;

	if (c >= 0xd800 && c < 0xdc00 && (s->encoding == TEXT_JAVA || s->encoding == TEXT_UTF16)) {
		if (s->at == s->end)
			return HALF;
		behind = *s;
		low = next_raw(&behind);
		if (low == HALF) {
			s->at = s->end;
			return HALF;
		}
		if (low >= 0xdc00 && low < 0xe000) {
			*s = behind;
			return 0x10000 + ((c & 0x3ff) << 10) + (low & 0x3ff);
		}
	}
	if (c == HALF)
		return HALF;
	return c == 0 || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff ? REPLACEMENT : c;
}

static size_t put(char *to, uint32_t c)
{
	size_t more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
	static const unsigned char first[] = {0, 0xc0, 0xe0, 0xf0};

	to[0] = (char)(first[more] | c >> (6 * more));
	for (size_t i = 1; i <= more; i++)
		to[i] = (char)(0x80 | (c >> (6 * (more - i)) & 0x3f));
	return more + 1;
}

/* A cut at the beginning may have left bytes of a character that began before. */
static void skip_half(struct source *s)
{
	if (s->encoding == TEXT_UTF8 || s->encoding == TEXT_JAVA)
		for (int i = 0; i < 3 && s->at < s->end && (*s->at & 0xc0) == 0x80; i++)
			s->at++;
}

/* Drops characters from the beginning until the rest and "…" fit: `n` bytes are all of them. */
static size_t keep_end(char *to, size_t max, struct source s, size_t n)
{
	size_t used = sizeof(ellipsis), dropped = 0, room = max - sizeof(ellipsis);
	char one[4];

	memcpy(to, ellipsis, sizeof(ellipsis));
	while (s.at < s.end) {
		uint32_t c = next(&s);
		size_t bytes = c == HALF ? 0 : put(one, c);

		if (n - dropped > room) {
			dropped += bytes;
			continue;
		}
		memcpy(to + used, one, bytes);
		used += bytes;
	}
	return used;
}

static size_t measure(struct source s)
{
	size_t n = 0;
	char one[4];

	while (s.at < s.end) {
		uint32_t c = next(&s);

		n += c == HALF ? 0 : put(one, c);
	}
	return n;
}

size_t text_to_utf8(char *to, size_t max, const void *from, size_t n, enum text_encoding encoding,
		    enum text_cut cut)
{
	const unsigned char *bytes = from;
	struct source s = {bytes, bytes + n, encoding};
	size_t used = 0, fits = 0;
	bool half = false;
	char one[4];

	if (cut == TEXT_CUT_BEGIN) {
		skip_half(&s);
		return keep_end(to, max, s, measure(s));
	}
	while (s.at < s.end) {
		uint32_t c = next(&s);
		size_t width = c == HALF ? 0 : put(one, c);

		half = c == HALF && cut == TEXT_WHOLE;
		if (half)
			width = put(one, REPLACEMENT);
		if (used + width > max) {
			cut = TEXT_CUT_END;
			break;
		}
		memcpy(to + used, one, width);
		used += width;
		if (used + sizeof(ellipsis) <= max)
			fits = used;
	}
	if (cut != TEXT_CUT_END)
		return used;
	memcpy(to + fits, ellipsis, sizeof(ellipsis));
	return fits + sizeof(ellipsis);
}

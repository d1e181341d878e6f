/* SPDX-License-Identifier: Apache-2.0 */
/* Case mapping. Contract in fold.h. */
#include "fold.h"

#include <wctype.h>

/* The first character of a non-empty text; its length, or 1 and U+FFFD for a
 * byte that begins none. */
static size_t decode(struct str s, uint32_t *ret)
{
	unsigned char c = (unsigned char)s.p[0];
	size_t n = c < 0x80 ? 1 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;

	if (n > s.n || !str_utf8(str_first(s, n))) {
		*ret = 0xfffd;
		return 1;
	}
	*ret = n == 1 ? c : c & (0xffu >> (n + 1));
	for (size_t i = 1; i < n; i++)
		*ret = *ret << 6 | ((unsigned char)s.p[i] & 0x3f);
	return n;
}

static int encode(uint32_t c, struct buf *out)
{
	char bytes[4];
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	if (n == 1) {
		bytes[0] = (char)c;
		return buf_append(out, bytes, 1);
	}
	for (size_t i = n; i-- > 1; c >>= 6)
		bytes[i] = (char)(0x80 | (c & 0x3f));
	bytes[0] = (char)((0xf00u >> n & 0xff) | c);
	return buf_append(out, bytes, n);
}

int fold(struct str s, bool upper, locale_t locale, struct buf *out)
{
	int r = 0;

	while (!r && s.n) {
		uint32_t c;
		size_t n = decode(s, &c);

		c = (uint32_t)(upper ? towupper_l(c, locale) : towlower_l(c, locale));
		r = encode(c, out);
		s = str_skip(s, n);
	}
	return r;
}

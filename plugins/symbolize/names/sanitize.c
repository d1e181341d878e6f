/* SPDX-License-Identifier: Apache-2.0 */
/* Cleaning names. Contract in sanitize.h. */
#include "symbolize/names/sanitize.h"

#include "base/check.h"

#define REPLACEMENT "\xef\xbf\xbd"
#define ELLIPSIS    "\xe2\x80\xa6"

static bool all_plain(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] < ' ' || s.p[i] > '~')
			return false;
	return true;
}

static bool harmful(uint32_t c)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{0, 0x1f},        {0x7f, 0x9f},       /* control */
		{0x61c, 0x61c},   {0x200e, 0x200f},   /* direction marks */
		{0x200b, 0x200b}, {0xfeff, 0xfeff},   /* invisible */
		{0x2028, 0x202e},                     /* line ends, embeddings */
		{0x2066, 0x2069},                     /* isolates */
		{0xfff9, 0xfffb}, {0xe0000, 0xe007f}, /* annotations, tags */
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (c >= ranges[i].first && c <= ranges[i].last)
			return true;
	return false;
}

struct str sanitize_name(struct str name, struct buf *scratch)
{
	if (name.n <= SANITIZE_MAX_BYTES && all_plain(name))
		return name;
	buf_clear(scratch);
	while (name.n) {
		uint32_t c = 0;
		size_t n = str_utf8_decode(name, &c);
		struct str piece = n && !harmful(c) ? str_first(name, n) : STR(REPLACEMENT);

		if (scratch->n + piece.n > SANITIZE_MAX_BYTES - sizeof(ELLIPSIS)) {
			buf_str_append(scratch, STR(ELLIPSIS));
			break;
		}
		buf_str_append(scratch, piece);
		name = str_skip(name, n ? n : 1);
	}
	check(scratch->n <= SANITIZE_MAX_BYTES);
	return scratch->failed ? STR_NULL : buf_str(scratch);
}

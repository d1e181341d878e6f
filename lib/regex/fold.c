/* SPDX-License-Identifier: Apache-2.0 */
/* Case mapping. Contract in fold.h. */
#include "regex/fold.h"

#include "regex/unicode.h"

int fold(struct str s, bool upper, struct buf *out)
{
	int r = 0;

	while (!r && s.n) {
		uint32_t c;
		size_t n = rune_decode(s, &c);

		r = rune_encode(upper ? rune_upper(c) : rune_lower(c), out);
		s = str_skip(s, n);
	}
	return r;
}

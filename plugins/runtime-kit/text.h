/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of a runtime as UTF-8. Whatever comes in, valid UTF-8 without a NUL comes out, which the
 * sampler does not refuse. Pure functions; no allocation. */
#pragma once

#include <stddef.h>

enum text_encoding {
	TEXT_UTF8,
	TEXT_JAVA,   /* "modified UTF-8": NUL is C0 80, beyond the BMP two surrogates of 3 bytes */
	TEXT_LATIN1, /* one byte a character; ASCII, too */
	TEXT_UTF16,  /* two bytes, of this machine's order */
	TEXT_UCS4,   /* four bytes */
};

/* What is missing of a source. "…" stands for it. */
enum text_cut {
	TEXT_WHOLE,
	TEXT_CUT_END,
	TEXT_CUT_BEGIN, /* a path, whose end says most */
};

/* The most bytes that `n` bytes of a source become, with "…". */
#define TEXT_BYTES(n) (3 * (size_t)(n) + 3)

/* Writes `n` bytes of a source to to[0 … max), max being at least 3, and returns how many bytes it
 * wrote. What finds no room is cut at a character: at the end, or at the beginning for
 * TEXT_CUT_BEGIN. A malformed character, half of one at a cut excepted, becomes U+FFFD. O(n). */
size_t text_to_utf8(char *to, size_t max, const void *from, size_t n, enum text_encoding encoding,
		    enum text_cut cut);

/* SPDX-License-Identifier: Apache-2.0 */
/* Encodings, cuts, and that nothing but UTF-8 comes out. */
#include "runtime-kit/text.h"

#include "testing/test.h"

#include <stdlib.h>
#include <string.h>

static struct str text(const void *from, size_t n, enum text_encoding encoding, enum text_cut cut)
{
	static char to[256];

	return (struct str){to, text_to_utf8(to, sizeof(to), from, n, encoding, cut)};
}

/* Each encoding has characters of one to four bytes. */
TEST(encodings_become_utf8)
{
	expect_str(text("h\xc3\xa9\xf0\x9f\x90\xb4", 7, TEXT_UTF8, TEXT_WHOLE), "hé🐴");
	expect_str(text("a\xc0\x80z", 4, TEXT_JAVA, TEXT_WHOLE), "a\xef\xbf\xbdz");
	expect_str(text("\xed\xa0\xbd\xed\xb0\xb4!", 7, TEXT_JAVA, TEXT_WHOLE), "🐴!");
	expect_str(text("\xe9t\xe9", 3, TEXT_LATIN1, TEXT_WHOLE), "été");
	expect_str(text("\x3d\xd8\x34\xdc\xe9\0", 6, TEXT_UTF16, TEXT_WHOLE), "🐴é");
	expect_str(text("\x34\xf4\1\0x\0\0\0", 8, TEXT_UCS4, TEXT_WHOLE), "🐴x");
}

/* A cut goes between characters and shows; a path keeps its end. */
TEST(cuts_show)
{
	char to[8];
	size_t n;

	expect_str(text("ab\xc3", 3, TEXT_UTF8, TEXT_CUT_END), "ab…");
	expect_str(text("ab\xc3", 3, TEXT_UTF8, TEXT_WHOLE), "ab\xef\xbf\xbd");
	expect_str(text("\xed\xa0\xbd", 3, TEXT_JAVA, TEXT_CUT_END), "…");
	expect_str(text("\xa9/b.py", 6, TEXT_UTF8, TEXT_CUT_BEGIN), "…/b.py");
	n = text_to_utf8(to, 8, "abcdefgh", 8, TEXT_UTF8, TEXT_WHOLE);
	expect_str(((struct str){to, n}), "abcdefgh");
	n = text_to_utf8(to, 8, "abcdefghi", 9, TEXT_UTF8, TEXT_WHOLE);
	expect_str(((struct str){to, n}), "abcde…");
	n = text_to_utf8(to, 8, "abcdefghi", 9, TEXT_UTF8, TEXT_CUT_BEGIN);
	expect_str(((struct str){to, n}), "…efghi");
	n = text_to_utf8(to, 8, "abc\xc3\xa9\xc3\xa9\xc3\xa9", 9, TEXT_UTF8, TEXT_WHOLE);
	expect_str(((struct str){to, n}), "abcé…");
}

/* Bytes at random, of each encoding, in each room: UTF-8 without a NUL that fits. */
TEST(anything_becomes_utf8)
{
	uint64_t seed = 1;

	for (int i = 0; i < 200000; i++) {
		unsigned char from[24];
		char to[80];
		size_t n = (size_t)i % sizeof(from), max, got;

		for (size_t k = 0; k < n; k++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			from[k] = (unsigned char)(seed >> 56);
			if (seed >> 48 & 1)
				from[k] |= 0xc0;
		}
		max = 3 + (seed >> 20) % (sizeof(to) - 2);
		got = text_to_utf8(to, max, from, n, (enum text_encoding)(i % 5),
				   (enum text_cut)(i / 5 % 3));
		expect(got <= max);
		expect(str_utf8((struct str){to, got}));
		expect(!memchr(to, 0, got));
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of characters and sets of them. */
#include "testing/test.h"
#include "regex/unicode.h"

#include <errno.h>
#include <stdlib.h>

static bool has(const struct charset *set, uint32_t c)
{
	vec_each (set, range)
		if (c >= range->first && c <= range->last)
			return true;
	return false;
}

/* Any bytes are cut into the same characters from both ends, and every character that is encoded is
 * decoded again. */
TEST(both_ends_agree)
{
	static const unsigned char bytes[] = {'a',  0x80, 0xbf, 0xc3, 0xa9, 0xe2, 0x82, 0xac,
					      0xed, 0xa0, 0xf0, 0x9f, 0x98, 0x80, 0xf4, 0xff};

	srand(3);
	for (int round = 0; round < 200000; round++) {
		uint32_t forward[12], backward[12], c;
		size_t n = 1 + (size_t)rand() % 11, n_forward = 0, n_backward = 0;
		char text[12];
		struct str s = {text, n};

		for (size_t i = 0; i < n; i++)
			text[i] = (char)bytes[(size_t)rand() % sizeof(bytes)];
		for (size_t at = 0; at < n; at += rune_decode(str_skip(s, at), &c), n_forward++)
			rune_decode(str_skip(s, at), &forward[n_forward]);
		for (; s.n; s.n -= rune_decode_last(s, &c), n_backward++)
			rune_decode_last(s, &backward[n_backward]);
		expect_eq(n_forward, n_backward);
		for (size_t i = 0; i < n_forward; i++)
			expect_eq(forward[i], backward[n_forward - 1 - i]);
	}
}

TEST(encoding)
{
	struct buf out = BUF_NULL;

	for (uint32_t c = 0; c <= RUNE_MAX; c++) {
		uint32_t back;

		if (c >= 0xd800 && c <= 0xdfff)
			continue;
		buf_clear(&out);
		expect_eq(rune_encode(c, &out), 0);
		expect_eq(rune_decode(buf_str(&out), &back), out.n);
		expect_eq(back, c);
	}
	buf_free(&out);
}

/* Folding goes round: from each character one comes back to it, and its cases are on the way. */
TEST(folding_is_a_circle)
{
	for (uint32_t c = 0; c <= RUNE_MAX; c++) {
		uint32_t f = rune_fold(c);
		unsigned int n = 1;

		for (; f != c && n < 5; f = rune_fold(f))
			n++;
		expect_eq(f, c);
	}
	expect_eq(rune_fold('k'), 0x212a); /* the Kelvin sign */
	expect_eq(rune_upper(0xe9), 0xc9);
	expect_eq(rune_lower(0x130), 'i');
	expect_eq(rune_upper(0xdf), 0xdf);
}

/* Negation is the complement, twice it is the set again. */
TEST(negation)
{
	struct charset set = {0}, twice = {0};

	expect_eq(charset_add_named(&set, STR("Lu")), 0);
	expect_eq(charset_add_named(&twice, STR("lu")), 0);
	expect_eq(charset_negate(&twice), 0);
	for (uint32_t c = 0; c <= RUNE_MAX; c += 7)
		expect(has(&set, c) != has(&twice, c));
	expect_eq(charset_negate(&twice), 0);
	charset_clean(&set);
	expect_eq(set.n, twice.n);
	expect_eq(memcmp(set.p, twice.p, set.n * sizeof(*set.p)), 0);
	vec_free(&set);
	vec_free(&twice);
}

/* Names are found in every spelling, and others are not. */
TEST(names)
{
	static const char *const good[] = {"L",          "Lu",        "Greek",   "greek",
					   "old_italic", "OldItalic", "Letter",  "lowercase letter",
					   "Any",        "ascii",     "Assigned"};
	static const char *const bad[] = {"", "_", "Lux", "Klingon", "^L", "L&"};
	struct charset set = {0};

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		set.n = 0;
		expect_eq(charset_add_named(&set, str_of(good[i])), 0);
		expect(set.n > 0);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		expect_eq(charset_add_named(&set, str_of(bad[i])), -ENOENT);
	vec_free(&set);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Slices: searching, cutting, converting. Contracts in str.h. */
#include "base/str.h"

#include "base/ascii.h"
#include "base/check.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

struct str str_of(const char *text)
{
	return text ? (struct str){text, strlen(text)} : STR_NULL;
}

bool str_is(struct str a, const char *text)
{
	return str_eq(a, str_of(text));
}

bool str_starts(struct str s, struct str prefix)
{
	return s.n >= prefix.n && str_eq(str_first(s, prefix.n), prefix);
}

bool str_ends(struct str s, struct str suffix)
{
	return s.n >= suffix.n && str_eq(str_skip(s, s.n - suffix.n), suffix);
}

int str_cmp(struct str a, struct str b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int order = n ? memcmp(a.p, b.p, n) : 0;

	return order ? order : (a.n > b.n) - (a.n < b.n);
}

size_t str_find(struct str s, char c)
{
	const char *at = s.n ? memchr(s.p, c, s.n) : NULL;

	return at ? (size_t)(at - s.p) : s.n;
}

size_t str_rfind(struct str s, char c)
{
	const char *at = s.n ? memrchr(s.p, c, s.n) : NULL;

	return at ? (size_t)(at - s.p) : s.n;
}

size_t str_search(struct str s, struct str needle)
{
	const char *at = s.n ? memmem(s.p, s.n, needle.p, needle.n) : NULL;

	return at ? (size_t)(at - s.p) : s.n;
}

struct str str_cut(struct str *rest, char c)
{
	size_t at = str_find(*rest, c);
	struct str part = str_first(*rest, at);

	*rest = str_skip(*rest, at + 1);
	return part;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct str str_trim(struct str s)
{
	while (s.n && is_space(s.p[0]))
		s = str_skip(s, 1);
	while (s.n && is_space(s.p[s.n - 1]))
		s.n--;
	return s;
}

static bool digits(struct str s, unsigned int base, uint64_t *ret)
{
	uint64_t value = 0;

	if (s.n == 0)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		unsigned int digit = (unsigned int)ascii_hex_value(s.p[i]);

		if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, digit, &value))
			return false;
	}
	*ret = value;
	return true;
}

bool str_u64(struct str s, uint64_t *ret)
{
	return digits(s, 10, ret);
}

bool str_hex(struct str s, uint64_t *ret)
{
	return digits(s, 16, ret);
}

bool str_is_hex(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!memchr("0123456789abcdef", s.p[i], 16))
			return false;
	return true;
}

/* What may follow each leading byte: how many bytes in all, and the range of the second one, which
 * is where overlong forms, surrogates and what lies beyond U+10FFFF are told apart. */
static const struct {
	unsigned char first, last, length, low, high;
} sequences[] = {
	{0x00, 0x7f, 1, 0, 0},       {0xc2, 0xdf, 2, 0x80, 0xbf}, {0xe0, 0xe0, 3, 0xa0, 0xbf},
	{0xe1, 0xec, 3, 0x80, 0xbf}, {0xed, 0xed, 3, 0x80, 0x9f}, {0xee, 0xef, 3, 0x80, 0xbf},
	{0xf0, 0xf0, 4, 0x90, 0xbf}, {0xf1, 0xf3, 4, 0x80, 0xbf}, {0xf4, 0xf4, 4, 0x80, 0x8f},
};

size_t str_utf8_length(struct str s)
{
	const unsigned char *b = (const unsigned char *)s.p;

	for (size_t i = 0; i < sizeof(sequences) / sizeof(*sequences); i++) {
		size_t n = sequences[i].length;

		if (b[0] < sequences[i].first || b[0] > sequences[i].last)
			continue;
		if (n > s.n || (n > 1 && (b[1] < sequences[i].low || b[1] > sequences[i].high)))
			return 0;
		for (size_t k = 2; k < n; k++)
			if ((b[k] & 0xc0) != 0x80)
				return 0;
		return n;
	}
	return 0;
}

size_t str_utf8_decode(struct str s, uint32_t *ret)
{
	const unsigned char *b = (const unsigned char *)s.p;
	size_t n = str_utf8_length(s);

	if (n == 0)
		return 0;
	*ret = n == 1 ? b[0] : b[0] & (0xffu >> (n + 1));
	for (size_t i = 1; i < n; i++)
		*ret = *ret << 6 | (b[i] & 0x3f);
	return n;
}

bool str_utf8(struct str s)
{
	while (s.n) {
		uint64_t ahead = UINT64_MAX;
		size_t n = sizeof(ahead);

		/* Nearly all text is ASCII: every name of an interval comes through here. */
		if (s.n >= n)
			memcpy(&ahead, s.p, n);
		if (ahead & 0x8080808080808080u)
			n = str_utf8_length(s);
		if (n == 0)
			return false;
		s = str_skip(s, n);
	}
	return true;
}

char *str_dup(struct str s)
{
	char *copy = malloc(s.n + 1);

	if (!copy)
		return NULL;
	if (s.n)
		memcpy(copy, s.p, s.n);
	copy[s.n] = '\0';
	return copy;
}

unsigned int str_distance(struct str a, struct str b, unsigned int limit)
{
	unsigned int row[65];

	if (a.n > 64 || b.n > 64)
		return limit + 1;
	for (size_t j = 0; j <= b.n; j++)
		row[j] = (unsigned int)j;
	for (size_t i = 1; i <= a.n; i++) {
		unsigned int diagonal = row[0];

		row[0] = (unsigned int)i;
		for (size_t j = 1; j <= b.n; j++) {
			unsigned int best = diagonal + (a.p[i - 1] != b.p[j - 1]);

			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			diagonal = row[j];
			row[j] = best;
		}
	}
	return row[b.n] <= limit ? row[b.n] : limit + 1;
}

/* Of the C library's own conversions only strtod has a form that takes a locale; so the calling
 * thread has the C locale for the time of a call. It is static in the C library: making it
 * allocates nothing and does not fail. */
struct borrowed {
	locale_t c, before;
};

static struct borrowed borrow(void)
{
	struct borrowed b = {.c = newlocale(LC_ALL_MASK, "C", (locale_t)0)};

	check(b.c != (locale_t)0);
	b.before = uselocale(b.c);
	return b;
}

static void give_back(const struct borrowed *b)
{
	uselocale(b->before);
	freelocale(b->c);
}

double str_parse_fraction(const char *text, char **ret_end)
{
	struct borrowed b = borrow();
	double value = strtod(text, ret_end);

	give_back(&b);
	return value;
}

int str_print_fraction(char *ret, size_t n, int precision, double value)
{
	struct borrowed b = borrow();
	int length = snprintf(ret, n, "%.*g", precision, value);

	give_back(&b);
	return length;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See unicode.h. A category is a union of the finest ones, which a bit mask tells, so that each
 * code point stands once in the table and not in every category that it belongs to. */
#include "regex/unicode.h"

#include "base/ascii.h"
#include "base/check.h"
#include "base/search.h"
#include "regex/unicode-tables.h"

#include <errno.h>
#include <stdlib.h>

#define NAME_MAX_BYTES 64

size_t rune_decode(struct str s, uint32_t *ret)
{
	size_t n = str_utf8_decode(s, ret);

	if (n)
		return n;
	*ret = RUNE_ERROR;
	return 1;
}

size_t rune_decode_last(struct str s, uint32_t *ret)
{
	size_t n = 1;

	while (n < 4 && n < s.n && ((unsigned char)s.p[s.n - n] & 0xc0) == 0x80)
		n++;
	if (str_utf8_decode(str_skip(s, s.n - n), ret) == n)
		return n;
	*ret = RUNE_ERROR;
	return 1;
}

int rune_encode(uint32_t c, struct buf *out)
{
	size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	char bytes[4] = {(char)c};

	check(c <= RUNE_MAX);
	for (size_t i = n; i-- > 1; c >>= 6)
		bytes[i] = (char)(0x80 | (c & 0x3f));
	if (n > 1)
		bytes[0] = (char)((0xf00u >> n & 0xff) | c);
	return buf_append(out, bytes, n);
}

/* Runs of step 2 lie between each other; so the search finds the last run that begins at or before
 * c, and the one before it may be meant as well. */
static const struct unicode_case *find_case(uint32_t c)
{
	size_t low = search_partition(unicode_cases_count, i, unicode_cases[i].first <= c);

	for (size_t back = 0; back < 2 && low-- > 0; back++) {
		const struct unicode_case *run = &unicode_cases[low];

		if (c <= run->last && (c - run->first) % run->step == 0)
			return run;
	}
	return NULL;
}

uint32_t rune_upper(uint32_t c)
{
	const struct unicode_case *run = find_case(c);

	return run ? (uint32_t)((int32_t)c + run->upper) : c;
}

uint32_t rune_lower(uint32_t c)
{
	const struct unicode_case *run = find_case(c);

	return run ? (uint32_t)((int32_t)c + run->lower) : c;
}

uint32_t rune_fold(uint32_t c)
{
	const struct unicode_case *run = find_case(c);

	return run ? (uint32_t)((int32_t)c + run->fold) : c;
}

int case_map(struct str s, bool upper, struct buf *out)
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

static int add_folds(struct charset *set, uint32_t c)
{
	int r = 0;

	for (uint32_t f = rune_fold(c); !r && f != c; f = rune_fold(f))
		r = charset_add(set, f, f);
	return r;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

int charset_fold(struct charset *set)
{
	size_t n;
	int r = 0;

	charset_clean(set);
	n = set->n; /* what is added comes behind these */
	for (size_t k = 0; !r && k < unicode_cases_count; k++) {
		const struct unicode_case *run = &unicode_cases[k];
		size_t i = search_partition(n, j, set->p[j].last < run->first);

		for (; !r && i < n && set->p[i].first <= run->last; i++) {
			struct range range = set->p[i];
			uint32_t c = larger(range.first, run->first);

			c += (c - run->first) % run->step; /* a step is 1 or 2 */
			for (; !r && c <= range.last && c <= run->last; c += run->step)
				r = add_folds(set, c);
		}
	}
	return r;
}

static uint64_t read_varint(const uint8_t **at)
{
	uint64_t value = 0;
	unsigned int shift = 0;
	uint8_t byte;

	do {
		byte = *(*at)++;
		value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	return value;
}

/* Adds the runs of the numbers whose bits are set in `mask`, or of `number`. */
static int add_runs(struct charset *set, const uint8_t *table, size_t size, uint64_t mask,
		    uint64_t number)
{
	const uint8_t *at = table;
	uint32_t first = 0;
	int r = 0;

	while (!r && at < table + size) {
		uint32_t n = (uint32_t)read_varint(&at);
		uint8_t member = *at++;

		if (member && (member == number || (member <= 64 && mask >> (member - 1) & 1)))
			r = charset_add(set, first, first + n - 1);
		first += n;
	}
	check(r || first == RUNE_MAX + 1);
	return r;
}

/* The name as the tables spell it: a capital, then small letters. */
static bool spell(struct str name, char ret[NAME_MAX_BYTES])
{
	size_t n = 0;

	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];

		if (c == '_' || c == '-' || c == ' ')
			continue;
		if (n + 1 == NAME_MAX_BYTES)
			return false;
		if (!n && c >= 'a' && c <= 'z')
			c = (char)(c - 'a' + 'A');
		else if (n && c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		ret[n++] = c;
	}
	ret[n] = '\0';
	return n > 0;
}

static int by_name(const void *sought, const void *name)
{
	return strcmp(sought, ((const struct unicode_name *)name)->name);
}

static const struct unicode_name *find_name(const struct unicode_name *names, size_t n,
					    const char *sought)
{
	return bsearch(sought, names, n, sizeof(*names), by_name);
}

bool rune_is_alnum(uint32_t c)
{
	const struct unicode_name *letter, *digit;
	const uint8_t *at = unicode_categories;
	uint64_t n = 0;
	uint8_t category = 0;

	if (c < 0x80)
		return ascii_is_alnum((int)c);
	letter = find_name(unicode_category_names, unicode_category_names_count, "L");
	digit = find_name(unicode_category_names, unicode_category_names_count, "Nd");
	while (n <= c) {
		n += read_varint(&at);
		category = *at++;
	}
	return category && letter && digit && (letter->value | digit->value) >> (category - 1) & 1;
}

static int add_assigned(struct charset *set)
{
	const struct unicode_name *none =
		find_name(unicode_category_names, unicode_category_names_count, "Cn");

	return add_runs(set, unicode_categories, unicode_categories_size,
			none ? ~none->value : UINT64_MAX, 0);
}

int charset_add_named(struct charset *set, struct str name)
{
	const struct unicode_name *found;
	char spelled[NAME_MAX_BYTES];

	if (!spell(name, spelled))
		return -ENOENT;
	if (strcmp(spelled, "Any") == 0)
		return charset_add(set, 0, RUNE_MAX);
	if (strcmp(spelled, "Ascii") == 0)
		return charset_add(set, 0, 0x7f);
	if (strcmp(spelled, "Assigned") == 0)
		return add_assigned(set);
	found = find_name(unicode_category_names, unicode_category_names_count, spelled);
	if (found)
		return add_runs(set, unicode_categories, unicode_categories_size, found->value, 0);
	found = find_name(unicode_script_names, unicode_script_names_count, spelled);
	if (found)
		return add_runs(set, unicode_scripts, unicode_scripts_size, 0, found->value);
	return -ENOENT;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A borrowed slice of bytes, by value. Not NUL-terminated. All functions are pure; none allocates
 * except str_dup. O(n) in the slice unless said. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
	const char *p;
	size_t n;
};

#define STR(literal) ((struct str){("" literal), sizeof(literal) - 1})
#define STR_NULL     ((struct str){NULL, 0})
/* For printf: "%.*s", STR_FMT(s). */
#define STR_FMT(s) (int)(s).n, (s).p

/* NULL: STR_NULL. */
struct str str_of(const char *text);

static inline bool str_eq(struct str a, struct str b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

bool str_is(struct str a, const char *text);

static inline struct str str_skip(struct str s, size_t n)
{
	return n >= s.n ? STR_NULL : (struct str){s.p + n, s.n - n};
}

static inline struct str str_first(struct str s, size_t n)
{
	return (struct str){s.p, n < s.n ? n : s.n};
}

bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);

/* memcmp order, the shorter first among equals: <0, 0, >0. */
int str_cmp(struct str a, struct str b);

/* Index of the first (last) `c`, or s.n where there is none. */
size_t str_find(struct str s, char c);
size_t str_rfind(struct str s, char c);

/* Index of the first `needle`, or s.n. O(n·m). */
size_t str_search(struct str s, struct str needle);

/* Cuts the part before the first `c` off the front of *rest and returns it;
 * without a `c` that is all of it, and *rest becomes STR_NULL. So
 * `while (rest.n) part = str_cut(&rest, ',')` walks a list. */
struct str str_cut(struct str *rest, char c);

/* Without leading and trailing space, tab, CR and LF. */
struct str str_trim(struct str s);

/* The whole slice as a number: base 10, or 16 without prefix. False, and *ret untouched, on
 * anything else or overflow. */
bool str_u64(struct str s, uint64_t *ret);
bool str_hex(struct str s, uint64_t *ret);
/* Whether all characters are lower-case hexadecimal digits. */
bool str_is_hex(struct str s);

/* Whether all of it is well-formed UTF-8. */
bool str_utf8(struct str s);
/* Bytes of the well-formed character that begins s, which is not empty; 0: none does. The second
 * one gives its code point too. */
size_t str_utf8_length(struct str s);
size_t str_utf8_decode(struct str s, uint32_t *ret);

/* A NUL-terminated copy to free, NULL when memory is short. */
char *str_dup(struct str s);

/* How many edits make a of b, at most `limit` + 1; for "did you mean". O(a.n·b.n), slices over 64
 * bytes count as unlike. */
unsigned int str_distance(struct str a, struct str b, unsigned int limit);

/* Fractions as strtod reads them and snprintf's "%.*g" writes them, but with a point whatever the
 * process's locale is: it may be set by an agent that we are a part of, and configurations and
 * metrics are the same everywhere. [any] */
double str_parse_fraction(const char *text, char **ret_end);
int str_print_fraction(char *ret, size_t n, int precision, double value);

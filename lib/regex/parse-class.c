/* SPDX-License-Identifier: Apache-2.0 */
/* Bracketed classes, escaped characters and classes. Contracts in parser.h. */
#include "regex/parser.h"

#include "base/ascii.h"
#include "regex/unicode.h"

#include <errno.h>

/* A class that a name or a letter stands for; the ranges end with one that begins after its end. */
struct known_class {
	const char *name;
	struct range ranges[5];
};

#define ENDS                                                                                       \
	{                                                                                          \
		1, 0                                                                               \
	}

static const struct known_class posix_classes[] = {
	{"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}, ENDS}},
	{"alpha", {{'A', 'Z'}, {'a', 'z'}, ENDS}},
	{"ascii", {{0, 0x7f}, ENDS}},
	{"blank", {{'\t', '\t'}, {' ', ' '}, ENDS}},
	{"cntrl", {{0, 0x1f}, {0x7f, 0x7f}, ENDS}},
	{"digit", {{'0', '9'}, ENDS}},
	{"graph", {{'!', '~'}, ENDS}},
	{"lower", {{'a', 'z'}, ENDS}},
	{"print", {{' ', '~'}, ENDS}},
	{"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}, ENDS}},
	{"space", {{'\t', '\r'}, {' ', ' '}, ENDS}},
	{"upper", {{'A', 'Z'}, ENDS}},
	{"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}, ENDS}},
	{"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}, ENDS}},
};

static const struct known_class perl_classes[] = {
	{"d", {{'0', '9'}, ENDS}},
	{"s", {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}, ENDS}},
	{"w", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}, ENDS}},
};

static const struct known_class *find_class(const struct known_class *classes, size_t n,
					    struct str name)
{
	for (size_t i = 0; i < n; i++)
		if (str_is(name, classes[i].name))
			return &classes[i];
	return NULL;
}

/* Adds `part` to the set, folded under (?i) and then negated; frees it. */
static int add_part(struct parser *p, struct charset *set, struct charset *part, bool negate)
{
	int r = 0;

	if (p->flags & FLAG_FOLD)
		r = charset_fold(part);
	p->n_ranges += part->n;
	if (!r && p->n_ranges > RANGES_MAX)
		r = -E2BIG;
	if (!r && negate)
		r = charset_negate(part);
	if (!r)
		r = charset_add_all(set, part->p, part->n);
	vec_free(part);
	return r;
}

static int add_known(struct parser *p, struct charset *set, const struct known_class *class,
		     bool negate)
{
	struct charset part = {0};
	int r = 0;

	for (size_t i = 0; !r && class->ranges[i].first <= class->ranges[i].last; i++)
		r = charset_add(&part, class->ranges[i].first, class->ranges[i].last);
	if (!r)
		return add_part(p, set, &part, negate);
	vec_free(&part);
	return r;
}

/* "\pN", "\p{Name}", "\P…", "\p{^Name}". */
static int add_property(struct parser *p, struct charset *set)
{
	size_t at = parser_at(p);
	bool negate = p->rest.p[1] == 'P';
	struct charset part = {0};
	struct str name;
	int r;

	p->rest = str_skip(p->rest, 2);
	if (p->rest.n && p->rest.p[0] == '{') {
		size_t n = str_find(p->rest, '}');

		name = str_first(str_skip(p->rest, 1), n ? n - 1 : 0);
		if (n == p->rest.n)
			return parser_wrong(p, at, n + 2, "invalid character class range");
		p->rest = str_skip(p->rest, n + 1);
	} else {
		name = p->rest;
		if (name.n)
			parser_next(p);
		name.n -= p->rest.n;
	}
	if (name.n && name.p[0] == '^') {
		name = str_skip(name, 1);
		negate = !negate;
	}
	r = charset_add_named(&part, name);
	if (!r)
		return add_part(p, set, &part, negate);
	vec_free(&part);
	if (r == -ENOENT)
		return parser_wrong(p, at, parser_at(p) - at, "invalid character class range");
	return r;
}

#define NO_CLASS 1

/* A class after a backslash: 0, NO_CLASS if it is none, or an error. */
static int add_escaped_class(struct parser *p, struct charset *set)
{
	const struct known_class *class;
	char c = p->rest.n > 1 ? p->rest.p[1] : 0, small = (char)(c | 0x20);

	if (!p->rest.n || p->rest.p[0] != '\\')
		return NO_CLASS;
	if (c == 'p' || c == 'P')
		return add_property(p, set);
	class = find_class(perl_classes, sizeof(perl_classes) / sizeof(*perl_classes),
			   (struct str){&small, 1});
	if (!class || c == 0)
		return NO_CLASS;
	p->rest = str_skip(p->rest, 2);
	return add_known(p, set, class, c != small);
}

/* After "\x": two digits, or any number of them in braces. */
static bool cut_hex(struct parser *p, uint32_t *ret)
{
	bool braces = p->rest.n && p->rest.p[0] == '{';
	uint32_t value = 0;
	size_t n = 0;

	if (braces)
		parser_next(p);
	while (p->rest.n && (braces || n < 2)) {
		uint32_t c = parser_next(p);
		int digit = ascii_hex_value((int)c);

		if (braces && c == '}' && n) {
			*ret = value;
			return true;
		}
		if (digit < 0)
			return false;
		value = value << 4 | (uint32_t)digit;
		if (value > RUNE_MAX)
			return false;
		n++;
	}
	*ret = value;
	return !braces && n == 2;
}

/* After "\": up to three octal digits; one alone, but for 0, would be a back-reference. */
static bool cut_octal(struct parser *p, uint32_t *ret)
{
	size_t n = 0;
	uint32_t value = 0;

	while (n < 3 && n < p->rest.n && p->rest.p[n] >= '0' && p->rest.p[n] <= '7')
		value = value * 8 + (uint32_t)(p->rest.p[n++] - '0');
	if (n < 2 && p->rest.p[0] != '0') {
		parser_next(p);
		return false;
	}
	p->rest = str_skip(p->rest, n);
	*ret = value;
	return true;
}

static bool cut_letter(struct parser *p, uint32_t *ret)
{
	static const char letters[] = "afnrtv", meant[] = "\a\f\n\r\t\v";
	uint32_t c = parser_next(p);
	bool word = ascii_is_alnum((int)c);

	for (size_t i = 0; letters[i]; i++) {
		if (c == (unsigned char)letters[i]) {
			*ret = (unsigned char)meant[i];
			return true;
		}
	}
	*ret = c;
	return c < 0x80 && !word;
}

/* At a backslash that stands for one character. */
static int cut_escape(struct parser *p, uint32_t *ret)
{
	size_t at = parser_at(p);
	bool good;

	p->rest = str_skip(p->rest, 1);
	if (!p->rest.n)
		return parser_wrong(p, at, 0, "trailing backslash");
	if (p->rest.p[0] == 'x') {
		p->rest = str_skip(p->rest, 1);
		good = cut_hex(p, ret);
	} else if (p->rest.p[0] >= '0' && p->rest.p[0] <= '7') {
		good = cut_octal(p, ret);
	} else {
		good = cut_letter(p, ret);
	}
	return good ? 0 : parser_wrong(p, at, parser_at(p) - at, "invalid escape sequence");
}

static int missing_bracket(struct parser *p, size_t opened)
{
	return parser_wrong(p, opened, 0, "missing closing ]");
}

static int cut_class_rune(struct parser *p, size_t opened, uint32_t *ret)
{
	if (!p->rest.n)
		return missing_bracket(p, opened);
	if (p->rest.p[0] == '\\')
		return cut_escape(p, ret);
	*ret = parser_next(p);
	return 0;
}

/* A character or a range of them. */
static int add_range(struct parser *p, struct charset *set, size_t opened)
{
	size_t at = parser_at(p);
	struct charset part = {0};
	uint32_t first = 0, last;
	int r = cut_class_rune(p, opened, &first);

	last = first;
	if (!r && p->rest.n > 1 && p->rest.p[0] == '-' && p->rest.p[1] != ']') {
		p->rest = str_skip(p->rest, 1);
		r = cut_class_rune(p, opened, &last);
		if (!r && last < first)
			r = parser_wrong(p, at, parser_at(p) - at, "invalid character class range");
	}
	if (!r)
		r = charset_add(&part, first, last);
	if (!r)
		return add_part(p, set, &part, false);
	vec_free(&part);
	return r;
}

/* "[:name:]" inside of brackets: 0, NO_CLASS if it is none, or an error. */
static int add_posix(struct parser *p, struct charset *set)
{
	size_t at = parser_at(p), n;
	struct str name = str_skip(p->rest, 2);
	const struct known_class *class;
	bool negate;

	if (p->rest.n < 3 || !str_starts(p->rest, STR("[:")))
		return NO_CLASS;
	n = str_search(name, STR(":]"));
	if (n == name.n)
		return NO_CLASS;
	p->rest = str_skip(name, n + 2);
	name = str_first(name, n);
	negate = name.n && name.p[0] == '^';
	class = find_class(posix_classes, sizeof(posix_classes) / sizeof(*posix_classes),
			   str_skip(name, negate));
	if (!class)
		return parser_wrong(p, at, n + 4, "invalid character class range");
	return add_known(p, set, class, negate);
}

static int add_item(struct parser *p, struct charset *set, size_t opened)
{
	int r = add_posix(p, set);

	if (r == NO_CLASS)
		r = add_escaped_class(p, set);
	if (r == NO_CLASS)
		r = add_range(p, set, opened);
	return r;
}

int parse_bracket(struct parser *p)
{
	size_t opened = parser_at(p);
	struct charset set = {0};
	bool negate, first = true;
	int r = 0;

	p->rest = str_skip(p->rest, 1);
	negate = p->rest.n && p->rest.p[0] == '^';
	p->rest = str_skip(p->rest, negate);
	/* A closing bracket that comes first is itself. */
	while (!r && (!p->rest.n || p->rest.p[0] != ']' || first)) {
		r = p->rest.n ? add_item(p, &set, opened) : missing_bracket(p, opened);
		first = false;
	}
	p->rest = str_skip(p->rest, 1);
	if (!r && negate)
		r = charset_negate(&set);
	if (r) {
		vec_free(&set);
		return r;
	}
	return parser_emit_set(p, &set);
}

int parse_escape(struct parser *p)
{
	struct charset set = {0};
	uint32_t c = 0;
	int r = add_escaped_class(p, &set);

	if (!r)
		return parser_emit_set(p, &set);
	vec_free(&set);
	if (r == NO_CLASS)
		r = cut_escape(p, &c);
	return r ? r : parser_emit_rune(p, c);
}

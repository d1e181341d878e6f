/* SPDX-License-Identifier: Apache-2.0 */
/* The scanner. A TERMINATOR is decided after the blanks and comments behind a token were skipped:
 * if a line ended there. That is the same as Alloy's look ahead over comments, since comments leave
 * no tokens. */
#include "host/lang/syntax/scan.h"

#include "base/ascii.h"
#include "base/check.h"

static char char_at(const struct scanner *s, size_t ahead)
{
	struct str text = s->source->text;

	return s->at + ahead < text.n ? text.p[s->at + ahead] : '\0';
}

struct scanner scanner_of(const struct source *source)
{
	bool marked = str_starts(source->text, STR("\xef\xbb\xbf"));
	size_t start = marked ? 3 : 0;

	return (struct scanner){.source = source, .at = start, .line_start = start, .line = 1};
}

/* What is not a letter beyond ASCII, by block: signs, spaces, punctuation, symbols, private use,
 * specials, pictures. */
static const struct {
	uint32_t first, last;
} no_letters[] = {
	{0x80, 0xa9},        {0xab, 0xb4},     {0xb6, 0xb9},     {0xbb, 0xbf},
	{0xd7, 0xd7},        {0xf7, 0xf7},     {0x2000, 0x206f}, {0x20a0, 0x20cf},
	{0x2190, 0x2bff},    {0x3000, 0x3004}, {0x3007, 0x3030}, {0xe000, 0xf8ff},
	{0xfe00, 0xfe6f},    {0xfeff, 0xff20}, {0xfff0, 0xffff}, {0x1f000, 0x1faff},
	{0xe0000, 0x10ffff},
};

/* Bytes of the character at the front and its code point. */
static size_t decode(struct str s, uint32_t *ret)
{
	unsigned char c = (unsigned char)s.p[0];
	size_t n = c < 0x80 ? 1 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
	uint32_t point = n == 1 ? c : c & (0xffu >> (n + 1));

	check(n <= s.n);
	for (size_t i = 1; i < n; i++)
		point = point << 6 | ((unsigned char)s.p[i] & 0x3f);
	*ret = point;
	return n;
}

/* Bytes of the letter (or, unless `first`, digit) at the front, 0 if none. */
static size_t letter(struct str s, bool first)
{
	uint32_t point;
	size_t n;

	if (!s.n)
		return 0;
	n = decode(s, &point);
	if (n == 1)
		return (point | 32) - 'a' < 26 || point == '_' ||
		       (!first && ascii_is_digit(s.p[0]));
	for (size_t i = 0; i < sizeof(no_letters) / sizeof(no_letters[0]); i++)
		if (point >= no_letters[i].first && point <= no_letters[i].last)
			return 0;
	return n;
}

static size_t ident_length(struct str s)
{
	size_t n = letter(s, true), more = n;

	while (more) {
		more = letter(str_skip(s, n), false);
		n += more;
	}
	return n;
}

static uint8_t keyword(struct str s)
{
	if (str_is(s, "null"))
		return TOKEN_NULL;
	if (str_is(s, "true"))
		return TOKEN_TRUE;
	return str_is(s, "false") ? TOKEN_FALSE : TOKEN_IDENT;
}

bool scan_is_ident(struct str s)
{
	return s.n && ident_length(s) == s.n && keyword(s) == TOKEN_IDENT;
}

static void next_line(struct scanner *s)
{
	s->at++;
	s->line++;
	s->line_start = s->at;
}

/* The comment that begins here; false if it is never closed. */
static bool skip_comment(struct scanner *s)
{
	bool block = char_at(s, 1) == '*';
	size_t n = s->source->text.n;

	s->at += 2;
	while (s->at < n) {
		if (char_at(s, 0) == '\n') {
			if (!block)
				return true;
			next_line(s);
		} else if (block && char_at(s, 0) == '*' && char_at(s, 1) == '/') {
			s->at += 2;
			return true;
		} else {
			s->at++;
		}
	}
	return !block;
}

/* Skips blanks and comments; false, with the scanner before the comment, if one is never closed. */
static bool skip_blanks(struct scanner *s)
{
	while (s->at < s->source->text.n) {
		char c = char_at(s, 0), next = char_at(s, 1);
		struct scanner before = *s;

		if (c == '\n')
			next_line(s);
		else if (c == ' ' || c == '\t' || c == '\r')
			s->at++;
		else if (c != '/' || (next != '/' && next != '*'))
			return true;
		else if (!skip_comment(s)) {
			*s = before;
			return false;
		}
	}
	return true;
}

/* A token of `n` bytes from here; moves past it. */
static struct token take(struct scanner *s, uint8_t kind, size_t n)
{
	struct token t = {
		.kind = kind,
		.text = {s->source->text.p + s->at, n},
		.place = {s->source, s->line, (uint32_t)(s->at - s->line_start + 1), (uint32_t)n},
	};

	check(n <= s->source->text.n - s->at);
	s->at += n;
	s->ends = (kind >= TOKEN_IDENT && kind <= TOKEN_FALSE) || kind == TOKEN_ILLEGAL ||
		  kind == TOKEN_RBRACE || kind == TOKEN_RPAREN || kind == TOKEN_RBRACKET;
	return t;
}

static struct token illegal(struct scanner *s, size_t n, const char *problem, const char *hint)
{
	struct token t = take(s, TOKEN_ILLEGAL, n);

	t.problem = problem;
	t.hint = hint;
	return t;
}

static size_t digits(const struct scanner *s, size_t from)
{
	while (ascii_is_digit(char_at(s, from)))
		from++;
	return from;
}

static struct token scan_number(struct scanner *s)
{
	size_t n = digits(s, 0), exponent;

	if (char_at(s, n) == '.')
		n = digits(s, n + 1);
	if ((char_at(s, n) | 32) == 'e') {
		exponent = n + 1 + (char_at(s, n + 1) == '+' || char_at(s, n + 1) == '-');
		n = digits(s, exponent);
		if (n == exponent)
			return illegal(s, n, "this number has an exponent without digits", NULL);
	}
	return take(s, TOKEN_NUMBER, n);
}

/* From the quote to its like on the same line. */
static struct token scan_string(struct scanner *s, char quote)
{
	size_t n = 1, left = s->source->text.n - s->at;

	while (n < left && char_at(s, n) != quote && char_at(s, n) != '\n')
		n += char_at(s, n) == '\\' && n + 1 < left && char_at(s, n + 1) != '\n' ? 2 : 1;
	if (quote == '\'')
		return illegal(s, n < left && char_at(s, n) == quote ? n + 1 : n,
			       "text in single quotes", "write it in double quotes: \"…\"");
	if (n >= left || char_at(s, n) != quote)
		return illegal(
			s, n, "this string is not closed on its line",
			"end it with a double quote; text of several lines goes between backticks");
	return take(s, TOKEN_STRING, n + 1);
}

static struct token scan_raw(struct scanner *s)
{
	struct str rest = str_skip(s->source->text, s->at + 1);
	size_t n = str_find(rest, '`');
	struct token t;

	if (n == rest.n)
		return illegal(s, rest.n + 1, "this string is never closed",
			       "end it with a backtick");
	t = take(s, TOKEN_RAW, n + 2);
	for (size_t i = 0; i < n; i++)
		if (rest.p[i] == '\n') {
			s->line++;
			s->line_start = (size_t)(rest.p + i + 1 - s->source->text.p);
		}
	return t;
}

/* The longer of two that begin alike comes first. */
static const struct {
	char text[3];
	uint8_t kind;
} operators[] = {
	{"||", TOKEN_OR},      {"&&", TOKEN_AND},     {"==", TOKEN_EQ},    {"!=", TOKEN_NE},
	{"<=", TOKEN_LE},      {">=", TOKEN_GE},      {"<", TOKEN_LT},     {">", TOKEN_GT},
	{"+", TOKEN_ADD},      {"-", TOKEN_SUB},      {"*", TOKEN_MUL},    {"/", TOKEN_DIV},
	{"%", TOKEN_MOD},      {"^", TOKEN_POW},      {"!", TOKEN_NOT},    {"=", TOKEN_ASSIGN},
	{"{", TOKEN_LBRACE},   {"}", TOKEN_RBRACE},   {"(", TOKEN_LPAREN}, {")", TOKEN_RPAREN},
	{"[", TOKEN_LBRACKET}, {"]", TOKEN_RBRACKET}, {",", TOKEN_COMMA},  {".", TOKEN_DOT},
};

/* What people write who come from another language. */
static const struct {
	const char *text, *problem, *hint;
} habits[] = {
	{";", "no \";\" ends a statement", "the end of the line does"},
	{":", "\":\" means nothing here",
	 "a name and its value are joined by \"=\"; of a YAML file, give what stands below "
	 "config.alloy"},
	{"&", "\"&\" alone is no operator", "write \"&&\""},
	{"|", "\"|\" alone is no operator", "write \"||\""},
	{"\xe2\x80\x9c", "a typographic quotation mark", "strings stand between plain ones: \"…\""},
	{"\xe2\x80\x9d", "a typographic quotation mark", "strings stand between plain ones: \"…\""},
	{"\xc2\xa0", "a non-breaking space", "write an ordinary one"},
	{"\xef\xbb\xbf", "a byte order mark inside the file", "remove it"},
};

static struct token scan_other(struct scanner *s)
{
	struct str rest = str_skip(s->source->text, s->at);
	uint32_t point;

	for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
		if (operators[i].text[0] == rest.p[0] &&
		    str_starts(rest, str_of(operators[i].text)))
			return take(s, operators[i].kind, strlen(operators[i].text));
	for (size_t i = 0; i < sizeof(habits) / sizeof(habits[0]); i++)
		if (str_starts(rest, str_of(habits[i].text)))
			return illegal(s, strlen(habits[i].text), habits[i].problem,
				       habits[i].hint);
	if (rest.p[0] == '#')
		return illegal(s, str_find(rest, '\n'), "\"#\" does not begin a comment",
			       "comments are // to the end of the line, or /* … */");
	return illegal(s, decode(rest, &point), "a character that has no meaning here", NULL);
}

struct token scan(struct scanner *s)
{
	struct scanner before = *s;
	bool closed = skip_blanks(s);
	struct str rest = str_skip(s->source->text, s->at);
	size_t n;

	if (before.ends && (s->line > before.line || !rest.n)) {
		struct token t = take(&before, TOKEN_TERMINATOR, 0);

		s->ends = false;
		return t;
	}
	if (!rest.n)
		return take(s, TOKEN_EOF, 0);
	if (!closed)
		return illegal(s, rest.n, "this comment is never closed", "end it with */");
	n = ident_length(rest);
	if (n)
		return take(s, keyword(str_first(rest, n)), n);
	if (ascii_is_digit(rest.p[0]) || (rest.p[0] == '.' && ascii_is_digit(char_at(s, 1))))
		return scan_number(s);
	if (rest.p[0] == '"' || rest.p[0] == '\'')
		return scan_string(s, rest.p[0]);
	return rest.p[0] == '`' ? scan_raw(s) : scan_other(s);
}

static size_t radix_escape(struct str s, size_t from, size_t n, unsigned int radix, uint32_t *ret)
{
	uint32_t value = 0;

	if (s.n < from + n)
		return 0;
	for (size_t i = from; i < from + n; i++) {
		unsigned int digit = (unsigned int)ascii_hex_value(s.p[i]);

		if (digit >= radix)
			return 0;
		value = value * radix + digit;
	}
	*ret = value;
	return from + n;
}

size_t scan_escape(struct str s, uint32_t *ret, bool *ret_byte)
{
	static const char names[] = "abfnrtv\\\"", values[] = "\a\b\f\n\r\t\v\\\"";
	char c = s.n > 1 ? s.p[1] : '\0';
	const char *name = c ? strchr(names, c) : NULL;
	size_t n = 0;

	check(s.n && s.p[0] == '\\');
	*ret_byte = c == 'x' || ascii_is_digit(c);
	*ret = 0;
	if (name) {
		*ret = (unsigned char)values[name - names];
		return 2;
	}
	if (ascii_is_digit(c))
		n = radix_escape(s, 1, 3, 8, ret);
	else if (c == 'x')
		n = radix_escape(s, 2, 2, 16, ret);
	else if (c == 'u')
		n = radix_escape(s, 2, 4, 16, ret);
	else if (c == 'U')
		n = radix_escape(s, 2, 8, 16, ret);
	if (*ret_byte ? *ret > 0xff : *ret > 0x10ffff || (*ret >= 0xd800 && *ret <= 0xdfff))
		return 0;
	return n;
}

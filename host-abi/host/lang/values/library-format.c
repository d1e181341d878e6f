/* SPDX-License-Identifier: Apache-2.0 */
/* string.format: the verbs of Go, by printf where they agree. */
#include "host/lang/values/library-text.h"

#include <math.h>

/* A verb: %, flags, width, precision, [argument], letter. */
#define FLAGS "-+ 0#"
enum { LEFT, PLUS, SPACE, ZERO, SHARP };
struct verb {
	bool flags[sizeof(FLAGS) - 1], has_precision;
	size_t width, precision;
	size_t argument; /* counted from 1; 0: the next */
	char letter;
};

static size_t read_number(struct str s, size_t *at)
{
	size_t n = 0;

	for (; *at < s.n && s.p[*at] >= '0' && s.p[*at] <= '9' && n < 1000; (*at)++)
		n = n * 10 + (size_t)(s.p[*at] - '0');
	return n;
}

/* [2]: which value is meant, not the next; false where that is no number from 1 on. */
static bool read_argument(struct str s, size_t *at, size_t *ret)
{
	if (*at >= s.n || s.p[*at] != '[')
		return true;
	(*at)++;
	*ret = read_number(s, at);
	return *ret && *at < s.n && s.p[(*at)++] == ']';
}

/* s begins behind the %. Bytes read; 0: it is none. */
static size_t read_verb(struct str s, struct verb *ret)
{
	const char *flag;
	size_t at = 0;

	*ret = (struct verb){0};
	for (; at < s.n && s.p[at] && (flag = strchr(FLAGS, s.p[at])); at++)
		ret->flags[flag - FLAGS] = true;
	ret->width = read_number(s, &at);
	if (at < s.n && s.p[at] == '.') {
		at++;
		ret->has_precision = true;
		ret->precision = read_number(s, &at);
	}
	if (!read_argument(s, &at, &ret->argument) || at >= s.n || !s.p[at] ||
	    ret->width >= 1000 || ret->precision >= 1000)
		return 0;
	ret->letter = s.p[at];
	return at + 1;
}

static size_t count_runes(struct str text)
{
	size_t n = 0;

	for (size_t i = 0; i < text.n; i++)
		n += ((unsigned char)text.p[i] & 0xc0) != 0x80;
	return n;
}

static void fill(struct buf *out, size_t n, char c)
{
	while (n--)
		buf_putc(out, c);
}

/* The text in its width; zeros stand between the sign and it. */
static void put(struct buf *out, const struct verb *v, const char *sign, struct str text)
{
	size_t shown = strlen(sign) + count_runes(text);
	size_t room = shown < v->width ? v->width - shown : 0;
	char before = v->flags[ZERO] && !v->flags[LEFT] ? '0' : ' ';

	if (before == ' ')
		fill(out, v->flags[LEFT] ? 0 : room, ' ');
	buf_str_append(out, str_of(sign));
	if (before == '0')
		fill(out, room, '0');
	buf_str_append(out, text);
	fill(out, v->flags[LEFT] ? room : 0, ' ');
}

static void put_quoted(struct buf *out, const struct verb *v, struct str text)
{
	static const char letters[] = "abtnvfr"; /* from 7 on */
	struct buf quoted = {0};

	buf_putc(&quoted, '"');
	for (size_t i = 0; i < text.n; i++) {
		unsigned char c = (unsigned char)text.p[i];
		bool named = c >= 7 && c <= 13;

		if (named)
			c = (unsigned char)letters[c - 7];
		buf_printf(&quoted, named || c == '"' || c == '\\' ? "\\%c"
				    : c < ' ' || c == 0x7f	     ? "\\x%02x"
								     : "%c", c);
	}
	buf_putc(&quoted, '"');
	out->failed |= quoted.failed;
	put(out, v, "", buf_str(&quoted));
	buf_free(&quoted);
}

static void put_text(struct buf *out, const struct verb *v, struct str text)
{
	size_t n = 0;

	if (v->has_precision)
		while (text.n > n && count_runes(str_first(text, n + 1)) <= v->precision)
			n++;
	else
		n = text.n;
	text.n = n;
	if (v->letter == 'q')
		put_quoted(out, v, text);
	else
		put(out, v, "", text);
}

bool library_scalar(struct lang *l, const struct andiron_value *v, struct str *ret)
{
	switch (v->kind) {
	case ANDIRON_VALUE_STRING:
		*ret = (struct str){v->string.ptr, v->string.len};
		return true;
	case ANDIRON_VALUE_NULL:
		*ret = STR("null");
		return true;
	case ANDIRON_VALUE_BOOL:
		*ret = v->integer ? STR("true") : STR("false");
		return true;
	case ANDIRON_VALUE_INT:
	case ANDIRON_VALUE_FLOAT:
		*ret = eval_number_text(l, v);
		return ret->p;
	default:
		return false;
	}
}

static bool is_number(const struct andiron_value *v)
{
	return v->kind == ANDIRON_VALUE_INT || v->kind == ANDIRON_VALUE_FLOAT;
}

static const char *sign_of(const struct verb *v, bool minus)
{
	return minus ? "-" : v->flags[PLUS] ? "+" : v->flags[SPACE] ? " " : "";
}

static void put_integer(struct buf *out, struct verb *v, bool minus, unsigned long long n)
{
	bool decimal = v->letter == 'd';
	unsigned int base = decimal ? 10 : v->letter == 'b' ? 2 : v->letter == 'o' ? 8 : 16;
	const char prefix[] = {'0', v->letter};
	int shown = !v->flags[SHARP] || decimal ? 0 : base == 8 ? 1 : 2;
	char text[1064], sign[4];
	size_t at = sizeof(text);

	snprintf(sign, sizeof(sign), "%s%.*s", sign_of(v, minus), shown, prefix);
	/* Zeros to fill are digits: a sign is counted, a prefix is not. */
	if (v->flags[ZERO] && !v->flags[LEFT] && !v->has_precision && v->width)
		v->precision = v->width - (sign[0] && sign[0] != '0');
	v->flags[ZERO] = false;
	do {
		text[--at] = "0123456789ABCDEF"[n % base];
		text[at] |= v->letter == 'X' ? 0 : 0x20;
		n /= base;
	} while (n || sizeof(text) - at < v->precision);
	put(out, v, sign, (struct str){text + at, sizeof(text) - at});
}

/* By printf; the point of a fraction is a point whatever the locale says. */
static void put_fraction(struct lang *l, struct buf *out, const struct verb *v, double x)
{
	char text[1400], spec[] = {'%', '.', '*', v->letter, '\0'}, *comma;
	const struct andiron_value value = {.kind = ANDIRON_VALUE_FLOAT, .number = fabs(x)};
	struct str shortest;

	if (!v->has_precision && (v->letter | 0x20) == 'g') {
		shortest = eval_number_text(l, &value);
		put(out, v, sign_of(v, signbit(x)), shortest);
		return;
	}
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(text, sizeof(text), spec, v->has_precision ? (int)v->precision : 6, fabs(x));
#pragma GCC diagnostic pop
	comma = strchr(text, ',');
	if (comma)
		*comma = '.';
	put(out, v, sign_of(v, signbit(x)), str_of(text));
}

static void put_number(struct lang *l, struct buf *out, struct verb *v,
		       const struct andiron_value *value)
{
	bool large = value->kind == ANDIRON_VALUE_FLOAT && value->integer; /* 2^63 and more */
	bool exact = value->kind == ANDIRON_VALUE_INT || large;
	bool whole = strchr("dboxX", v->letter);
	long long n = exact ? value->integer : whole ? (long long)value->number : 0;
	bool minus = n < 0 && !large;

	if (v->letter == 'v') {
		v->flags[PLUS] = v->flags[SHARP] = false;
		v->letter = exact ? 'd' : 'g';
		whole = exact;
	}
	if (whole)
		put_integer(out, v, minus,
			    minus ? -(unsigned long long)n : (unsigned long long)n);
	else
		put_fraction(l, out, v,
			     value->kind == ANDIRON_VALUE_INT ? (double)n : value->number);
}

/* Whether a number can be written as a whole one, where that is asked for. */
static bool fits(const struct verb *v, const struct andiron_value *n)
{
	return !strchr("dboxX", v->letter) || n->kind != ANDIRON_VALUE_FLOAT || n->integer ||
	       fabs(n->number) < 0x1p63;
}

/* One verb's value; false after an error. */
static bool put_verb(struct lang *l, const struct expr *e, struct buf *out, struct verb *v,
		     const struct andiron_value *args, size_t i)
{
	struct str text = STR_NULL;

	if (i >= e->n_items) {
		lang_error(l, e->place, NULL, "the format asks for more values than %u",
			   e->n_items - 1);
		return false;
	}
	if (strchr("dboxXeEfFgG", v->letter) || (v->letter == 'v' && is_number(&args[i]))) {
		if (!is_number(&args[i]) || !fits(v, &args[i]))
			return library_refuse(l, e, i,
					      is_number(&args[i]) ? "a whole number" : "a number",
					      &args[i]);
		put_number(l, out, v, &args[i]);
		return true;
	}
	if (!strchr("vsqt", v->letter)) {
		lang_error(l, library_argument(e, 0)->place,
			   "the verbs are %v %s %q %t %d %b %o %x %e %f %g",
			   "the format holds the unknown verb %%%c", v->letter);
		return false;
	}
	if (!library_scalar(l, &args[i], &text))
		return !l->no_memory && library_refuse(l, e, i, "text or a number", &args[i]);
	put_text(out, v, text);
	return true;
}

LIBRARY_FUNCTION(format)
{
	struct buf out = library_text();
	size_t used = 1;
	struct str rest = STR_NULL;
	uint32_t flags = 0;
	bool chosen = false;

	if (!library_strings(l, e, args, 1, &rest))
		return false;
	for (uint32_t i = 0; i < e->n_items; i++)
		flags |= args[i].flags;
	while (rest.n && !out.failed) {
		size_t at = str_find(rest, '%'), n;
		bool percent = at < rest.n;
		struct verb verb;

		buf_str_append(&out, str_first(rest, at));
		rest = str_skip(rest, at + 1);
		if (str_starts(rest, STR("%"))) {
			buf_putc(&out, '%');
			rest = str_skip(rest, 1);
			continue;
		}
		if (!percent)
			break;
		n = read_verb(rest, &verb);
		if (!n)
			lang_error(l, e->place, NULL, "the format ends within a verb");
		if (verb.argument) {
			used = verb.argument;
			chosen = true;
		}
		if (!n || !put_verb(l, e, &out, &verb, args, used++)) {
			buf_free(&out);
			return false;
		}
		rest = str_skip(rest, n);
	}
	if (used < e->n_items && !chosen) {
		lang_error(l, e->place, NULL, "the format takes %zu values, not %u", used - 1,
			   e->n_items - 1);
		buf_free(&out);
		return false;
	}
	return library_give(l, e, &out, flags, ret);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* string.format: the verbs of Go, by printf where they agree. */
#include "host/lang/values/library-text.h"

#include <math.h>

/* A verb: %, flags, width, precision, [argument], letter. */
struct verb {
	char spec[40]; /* for printf, without length and letter */
	size_t width, precision;
	size_t argument; /* counted from 1; 0: the next */
	bool left, has_precision;
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
	size_t at = 0;
	int n;

	*ret = (struct verb){0};
	if (!s.n)
		return 0;
	while (at < s.n && at < 5 && s.p[at] && strchr("+-# 0", s.p[at]))
		ret->left |= s.p[at++] == '-';
	ret->spec[0] = '%';
	memcpy(ret->spec + 1, s.p, at);
	n = (int)at + 1;
	ret->width = read_number(s, &at);
	if (at < s.n && s.p[at] == '.') {
		at++;
		ret->has_precision = true;
		ret->precision = read_number(s, &at);
	}
	if (ret->width)
		n += snprintf(ret->spec + n, sizeof(ret->spec) - (size_t)n, "%zu", ret->width);
	if (ret->has_precision)
		snprintf(ret->spec + n, sizeof(ret->spec) - (size_t)n, ".%zu", ret->precision);
	if (!read_argument(s, &at, &ret->argument) || at >= s.n || !s.p[at] ||
	    ret->width >= 1000 || ret->precision >= 1000)
		return 0;
	ret->letter = s.p[at];
	return at + 1;
}

static void pad(struct buf *out, const struct verb *v, struct str text)
{
	size_t shown = 0;

	if (v->has_precision && v->precision < text.n)
		text.n = v->precision;
	for (size_t i = 0; i < text.n; i++)
		shown += ((unsigned char)text.p[i] & 0xc0) != 0x80;
	for (size_t i = shown; !v->left && i < v->width; i++)
		buf_putc(out, ' ');
	buf_str_append(out, text);
	for (size_t i = shown; v->left && i < v->width; i++)
		buf_putc(out, ' ');
}

static void put_quoted(struct buf *out, struct str text)
{
	buf_putc(out, '"');
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '"' || text.p[i] == '\\')
			buf_putc(out, '\\');
		if (text.p[i] == '\n')
			buf_str_append(out, STR("\\n"));
		else
			buf_putc(out, text.p[i]);
	}
	buf_putc(out, '"');
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

static void put_binary(struct buf *out, const struct verb *v, long long n, bool is_signed)
{
	bool minus = is_signed && n < 0;
	unsigned long long rest = minus ? -(unsigned long long)n : (unsigned long long)n;
	char text[66];
	size_t at = sizeof(text);

	do
		text[--at] = (char)('0' + (rest & 1));
	while (rest >>= 1);
	if (minus)
		text[--at] = '-';
	pad(out, v, (struct str){text + at, sizeof(text) - at});
}

/* By printf; the point of a fraction is a point whatever the locale says. */
static void put_number(struct buf *out, const struct verb *v, const struct andiron_value *value)
{
	bool whole = strchr("dboxX", v->letter);
	bool large = value->kind == ANDIRON_VALUE_FLOAT && value->integer; /* 2^63 and more */
	bool exact = value->kind == ANDIRON_VALUE_INT || large;
	long long n = exact ? value->integer : whole ? (long long)value->number : 0;
	double x = value->kind == ANDIRON_VALUE_INT ? (double)value->integer : value->number;
	char spec[48], text[1400], *comma;

	if (v->letter == 'b') {
		put_binary(out, v, n, !large);
		return;
	}
	snprintf(spec, sizeof(spec), "%s%s%c", v->spec, whole ? "ll" : "",
		 large && v->letter == 'd' ? 'u' : v->letter);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	if (whole)
		snprintf(text, sizeof(text), spec, n);
	else
		snprintf(text, sizeof(text), spec, x);
#pragma GCC diagnostic pop
	comma = whole ? NULL : strchr(text, ',');
	if (comma)
		*comma = '.';
	buf_str_append(out, str_of(text));
}

/* One verb's value; false after an error. */
static bool put_verb(struct lang *l, const struct expr *e, struct buf *out, const struct verb *v,
		     const struct andiron_value *args, size_t i)
{
	struct str text = STR_NULL;

	if (i >= e->n_items) {
		lang_error(l, e->place, NULL, "the format asks for more values than %u",
			   e->n_items - 1);
		return false;
	}
	if (strchr("dboxXeEfFgG", v->letter)) {
		if (!is_number(&args[i]))
			return library_refuse(l, e, i, "a number", &args[i]);
		if (strchr("dboxX", v->letter) && args[i].kind == ANDIRON_VALUE_FLOAT &&
		    !args[i].integer && !(fabs(args[i].number) < 0x1p63))
			return library_refuse(l, e, i, "a whole number", &args[i]);
		put_number(out, v, &args[i]);
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
	if (v->letter == 'q')
		put_quoted(out, text);
	else
		pad(out, v, text);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* string.format: the verbs of Go, by printf where they agree. */
#include "host/lang/values/library-text.h"

#include "base/ascii.h"

#include <math.h>

/* A verb: %, flags, [argument], width, precision, [argument], letter. */
#define FLAGS "-+ 0#"
enum { LEFT, PLUS, SPACE, ZERO, SHARP };
struct verb {
	bool flags[sizeof(FLAGS) - 1], has_precision;
	size_t width, precision;
	char letter;
	struct str rune; /* the whole letter */
};

#define MAX_WIDTH 999
#define NONE      INT64_MIN

struct format {
	struct lang *l;
	const struct expr *e;
	const struct andiron_value *args;
	struct buf out;
	uint32_t flags;      /* of the values and of what is in them: a secret stays one */
	size_t used;         /* of the arguments; the first is the format */
	bool chosen;         /* one by its number */
	bool bad_index;      /* of this verb */
	bool unfit, refused; /* something did not fit, as Go would say; refused: an error */
};

static bool is_one_of(const char *letters, char c)
{
	return c && strchr(letters, c);
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

/* In quotes or, without such, as bytes in hexadecimal. */
static void put_bytes(struct buf *out, const struct verb *v, char quote, struct str text)
{
	static const char letters[] = "abtnvfr"; /* from 7 on */
	struct buf bytes = {0};

	if (quote)
		buf_putc(&bytes, quote);
	for (size_t i = 0; i < text.n; i++) {
		unsigned char c = (unsigned char)text.p[i];
		bool named = c >= 7 && c <= 13 && quote;

		if (named)
			c = (unsigned char)letters[c - 7];
		if (!quote)
			buf_printf(&bytes, v->letter == 'X' ? "%02X" : "%02x", c);
		else if (named || text.p[i] == quote || c == '\\')
			buf_printf(&bytes, "\\%c", c);
		else
			buf_printf(&bytes, c < ' ' || c == 0x7f ? "\\x%02x" : "%c", c);
	}
	if (quote)
		buf_putc(&bytes, quote);
	out->failed |= bytes.failed;
	put(out, v, "", buf_str(&bytes));
	buf_free(&bytes);
}

static bool put_string(struct buf *out, const struct verb *v, struct str text)
{
	bool hex = (v->letter | 0x20) == 'x', quoted = v->letter == 'q';
	size_t n = v->has_precision ? 0 : text.n;

	if (!is_one_of("vsqxXT", v->letter))
		return false;
	quoted |= v->letter == 'v' && v->flags[SHARP];
	while (text.n > n && (hex ? n : count_runes(str_first(text, n + 1)) - 1) < v->precision)
		n++;
	text.n = n;
	if (hex || quoted)
		put_bytes(out, v, quoted ? '"' : '\0', text);
	else
		put(out, v, "", text);
	return true;
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

static const char *sign_of(const struct verb *v, bool minus)
{
	return minus ? "-" : v->flags[PLUS] ? "+" : v->flags[SPACE] ? " " : "";
}

/* Of the prefix 0x, how much is shown. */
static int prefix_length(const struct verb *v, unsigned int base, bool zero)
{
	if (v->letter == 'O')
		return 2;
	if (!v->flags[SHARP] || base == 10)
		return 0;
	return base == 8 ? !zero : 2;
}

static void put_digits(struct buf *out, struct verb *v, bool minus, unsigned long long n)
{
	char kind = v->letter == 'O' ? 'o' : v->letter;
	unsigned int base = kind == 'd' ? 10 : kind == 'b' ? 2 : kind == 'o' ? 8 : 16;
	const char prefix[] = {'0', kind};
	int shown = prefix_length(v, base, n == 0);
	char text[1064], sign[4];
	size_t at = sizeof(text);

	snprintf(sign, sizeof(sign), "%s%.*s", sign_of(v, minus), shown, prefix);
	/* Zeros to fill are digits: a sign is counted, a prefix is not. */
	if (v->flags[ZERO] && !v->flags[LEFT] && !v->has_precision && v->width)
		v->precision = v->width - (sign[0] && sign[0] != '0');
	v->flags[ZERO] = false;
	do {
		text[--at] = "0123456789ABCDEF"[n % base];
		text[at] |= kind == 'X' ? 0 : 0x20;
		n /= base;
	} while (n || sizeof(text) - at < v->precision);
	put(out, v, sign, (struct str){text + at, sizeof(text) - at});
}

static void put_rune(struct buf *out, const struct verb *v, unsigned long long n)
{
	struct buf text = {0};

	library_utf8(&text, n > 0x10ffff || n >> 11 == 0x1b ? 0xfffd : (uint32_t)n);
	if (v->letter == 'q')
		put_bytes(out, v, '\'', buf_str(&text));
	else
		put(out, v, "", buf_str(&text));
	out->failed |= text.failed;
	buf_free(&text);
}

static bool put_integer(struct buf *out, struct verb *v, bool minus, unsigned long long n)
{
	char text[24];

	if (is_one_of("cq", v->letter)) {
		put_rune(out, v, minus ? ~0ull : n);
	} else if (v->letter == 'U') {
		v->flags[ZERO] = false;
		snprintf(text, sizeof(text), "U+%04llX", minus ? -n : n);
		put(out, v, "", str_of(text));
	} else if (is_one_of("dboOxX", v->letter)) {
		put_digits(out, v, minus, n);
	} else {
		return false;
	}
	return true;
}

/* By printf; the point of a fraction is a point whatever the locale says. Of %g as many digits as
 * tell the number from all others. */
static bool put_fraction(struct buf *out, const struct verb *v, double x)
{
	char text[1400], spec[] = {'%', '.', '*', v->letter, '\0'}, *comma;
	int digits = v->has_precision ? (int)v->precision : 6;
	bool least = !v->has_precision && (v->letter | 0x20) == 'g', minus = signbit(x);

	if (!is_one_of("eEfFgG", v->letter))
		return false;
	x = fabs(x);
	if (least) {
		spec[3] = (char)(x != 0 && (x < 1e-4 || x >= 1e6) ? v->letter - 2 : 'f');
		digits = 0;
	}
	do {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(text, sizeof(text), spec, digits++, x);
#pragma GCC diagnostic pop
		comma = strchr(text, ',');
		if (comma)
			*comma = '.';
	} while (least && digits < 25 && str_parse_fraction(text, NULL) != x);
	put(out, v, sign_of(v, minus), str_of(text));
	return true;
}

/* A whole number of JSON is none here, so it may be written as a fraction. */
static bool put_number(struct buf *out, struct verb *v, const struct andiron_value *value)
{
	bool large = value->kind == ANDIRON_VALUE_FLOAT && value->integer; /* 2^63 and more */
	bool exact = value->kind == ANDIRON_VALUE_INT || large;
	bool minus = exact && !large && value->integer < 0;
	unsigned long long n = (unsigned long long)value->integer;

	if (v->letter == 'v') {
		v->flags[SHARP] = false;
		v->letter = exact ? 'd' : 'g';
	}
	if (exact && put_integer(out, v, minus, minus ? -n : n))
		return true;
	return put_fraction(out, v,
			    value->kind == ANDIRON_VALUE_INT ? (double)value->integer
							     : value->number);
}

/* --- Verbs --- */

/* As Go calls it; numbers as Alloy has them. */
static const char *type_of(const struct andiron_value *v)
{
	switch (v->kind) {
	case ANDIRON_VALUE_STRING:
		return "string";
	case ANDIRON_VALUE_BOOL:
		return "bool";
	case ANDIRON_VALUE_INT:
		return "int";
	case ANDIRON_VALUE_FLOAT:
		return v->integer ? "uint64" : "float64";
	case ANDIRON_VALUE_LIST:
		return "[]interface {}";
	default:
		return "<nil>";
	}
}

static void put_value(struct format *f, struct verb v, const struct andiron_value *value);

/* %!d(string=text) */
static void put_unfit(struct format *f, struct verb v, const struct andiron_value *value)
{
	f->unfit = true;
	buf_printf(&f->out, "%%!%.*s(%s", STR_FMT(v.rune), type_of(value));
	if (value->kind != ANDIRON_VALUE_NULL) {
		buf_putc(&f->out, '=');
		v.letter = 'v';
		v.flags[SHARP] = false;
		put_value(f, v, value);
	}
	buf_putc(&f->out, ')');
}

static void put_list(struct format *f, struct verb v, const struct andiron_value *list)
{
	buf_putc(&f->out, '[');
	for (uint64_t i = 0; i < list->n_items && !f->out.failed && !f->refused; i++) {
		f->flags |= list->items[i].flags;
		if (i)
			buf_putc(&f->out, ' ');
		if (list->items[i].kind == ANDIRON_VALUE_NULL)
			buf_str_append(&f->out, STR("<nil>"));
		else
			put_value(f, v, &list->items[i]);
	}
	buf_putc(&f->out, ']');
}

static void put_value(struct format *f, struct verb v, const struct andiron_value *value)
{
	bool fits = true;

	if (value->kind == ANDIRON_VALUE_MAP || value->kind == ANDIRON_VALUE_CAPSULE)
		f->refused |= !library_refuse(f->l, f->e, f->used - 1, "text or a number", value);
	else if (v.letter == 'T')
		put_string(&f->out, &v, str_of(type_of(value)));
	else if (value->kind == ANDIRON_VALUE_LIST)
		put_list(f, v, value);
	else if (value->kind == ANDIRON_VALUE_STRING)
		fits = put_string(&f->out, &v, (struct str){value->string.ptr, value->string.len});
	else if (value->kind == ANDIRON_VALUE_INT || value->kind == ANDIRON_VALUE_FLOAT)
		fits = put_number(&f->out, &v, value);
	else if (v.letter == 'v' || (v.letter == 't' && value->kind == ANDIRON_VALUE_BOOL))
		put(&f->out, &v, "",
		    value->kind == ANDIRON_VALUE_NULL ? STR("<nil>")
		    : value->integer		      ? STR("true")
						      : STR("false"));
	else
		fits = false;
	if (!fits)
		put_unfit(f, v, value);
}

/* --- The format --- */

static uint64_t read_digits(struct str *rest)
{
	uint64_t n = 0;

	for (; rest->n && ascii_is_digit(rest->p[0]); *rest = str_skip(*rest, 1))
		if (n <= MAX_WIDTH)
			n = n * 10 + (uint64_t)(rest->p[0] - '0');
	return n;
}

/* [2]: which value is meant, not the next. Whether there is such. */
static bool read_argument(struct format *f, struct str *rest)
{
	struct str number = str_skip(*rest, 1);
	size_t end = str_find(number, ']');
	uint64_t n;

	if (!str_starts(*rest, STR("[")))
		return false;
	*rest = str_skip(number, end < number.n ? end + 1 : 0);
	n = read_digits(&number);
	f->chosen = true;
	if (n && n < f->e->n_items && str_starts(number, STR("]")))
		f->used = n;
	else
		f->bad_index = true;
	return true;
}

/* A width or precision, from `least` on, or NONE; `*` is the next argument's. */
static int64_t read_number(struct format *f, struct str *rest, int64_t least, const char *bad)
{
	const struct andiron_value *value = &f->args[f->used];
	int64_t n = MAX_WIDTH + 1;

	if (!str_starts(*rest, STR("*"))) {
		n = (int64_t)read_digits(rest);
	} else {
		*rest = str_skip(*rest, 1);
		if (f->used < f->e->n_items && f->used++ && value->kind == ANDIRON_VALUE_INT)
			n = value->integer;
	}
	if (n >= least && n <= MAX_WIDTH)
		return n;
	buf_str_append(&f->out, str_of(bad));
	f->unfit = true;
	return NONE;
}

/* Behind the %, up to the letter. */
static void read_verb(struct format *f, struct str *rest, struct verb *v)
{
	int64_t number;
	const char *flag;

	*v = (struct verb){0};
	f->bad_index = false;
	while (rest->n && rest->p[0] && (flag = strchr(FLAGS, rest->p[0]))) {
		v->flags[flag - FLAGS] = true;
		*rest = str_skip(*rest, 1);
	}
	/* Behind it stands a letter or *. */
	if (read_argument(f, rest))
		f->bad_index |= rest->n && (ascii_is_digit(rest->p[0]) || rest->p[0] == '.');
	number = read_number(f, rest, -MAX_WIDTH, "%!(BADWIDTH)");
	if (number != NONE) {
		v->flags[LEFT] |= number < 0;
		v->width = (size_t)(number < 0 ? -number : number);
	}
	if (str_starts(*rest, STR("."))) {
		*rest = str_skip(*rest, 1);
		read_argument(f, rest);
		number = read_number(f, rest, 0, "%!(BADPREC)");
		v->has_precision = number != NONE;
		v->precision = v->has_precision ? (size_t)number : 0;
	}
	read_argument(f, rest);
}

/* What there is no value for. */
static void put_fault(struct format *f, struct str rune, const char *fault)
{
	f->unfit = true;
	buf_printf(&f->out, "%%!%.*s(%s)", STR_FMT(rune), fault);
}

static void put_verb(struct format *f, struct str *rest)
{
	struct verb v;
	uint32_t rune;

	read_verb(f, rest, &v);
	if (!rest->n) {
		put_fault(f, STR(""), "NOVERB");
		return;
	}
	v.letter = rest->p[0];
	v.rune = str_first(*rest, str_utf8_decode(*rest, &rune));
	*rest = str_skip(*rest, v.rune.n);
	if (v.letter == '%')
		buf_putc(&f->out, '%');
	else if (f->bad_index)
		put_fault(f, v.rune, "BADINDEX");
	else if (f->used >= f->e->n_items)
		put_fault(f, v.rune, "MISSING");
	else {
		v.flags[PLUS] &= v.letter != 'v';
		put_value(f, v, &f->args[f->used++]);
	}
}

/* Values that no verb takes. */
static void put_others(struct format *f)
{
	struct verb v = {.letter = 'v'};
	const char *before = "%!(EXTRA ";

	if (f->chosen)
		return;
	while (f->used < f->e->n_items && !f->refused) {
		const struct andiron_value *value = &f->args[f->used++];

		buf_printf(&f->out, "%s%s", before, type_of(value));
		before = ", ";
		if (value->kind == ANDIRON_VALUE_NULL)
			continue;
		buf_putc(&f->out, '=');
		put_value(f, v, value);
	}
	f->unfit |= *before == ',';
	buf_str_append(&f->out, *before == ',' ? STR(")") : STR_NULL);
}

LIBRARY_FUNCTION(format)
{
	struct format f = {.l = l, .e = e, .args = args, .out = library_text(), .used = 1};
	struct str rest = STR_NULL;

	if (!library_strings(l, e, args, 1, &rest))
		return false;
	for (uint32_t i = 0; i < e->n_items; i++)
		f.flags |= args[i].flags;
	while (rest.n && !f.out.failed && !f.refused) {
		size_t at = str_find(rest, '%');
		bool verb = at < rest.n;

		buf_str_append(&f.out, str_first(rest, at));
		rest = str_skip(rest, at + 1);
		if (verb)
			put_verb(&f, &rest);
	}
	put_others(&f);
	if (f.unfit)
		lang_warning(l, library_argument(e, 0)->place,
			     "as in Go, its text holds %!VERB(TYPE=VALUE) instead",
			     "the format does not fit its values");
	if (!f.refused)
		return library_give(l, e, &f.out, f.flags, ret);
	buf_free(&f.out);
	return false;
}

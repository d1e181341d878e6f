/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in yaml-scalar.h. */
#include "host/lang/values/yaml-scalar.h"

#include "base/ascii.h"
#include "base/buf.h"

#include <math.h>

/* One of up to three spellings. */
static bool is_one_of(struct str text, const char *a, const char *b, const char *c)
{
	return str_is(text, a) || str_is(text, b) || str_is(text, c);
}

static bool is_null(struct str text)
{
	return !text.n || str_is(text, "~") || is_one_of(text, "null", "Null", "NULL");
}

static bool read_bool(struct str text, struct andiron_value *ret)
{
	bool yes = is_one_of(text, "true", "True", "TRUE");

	if (!yes && !is_one_of(text, "false", "False", "FALSE"))
		return false;
	ret->kind = ANDIRON_VALUE_BOOL;
	ret->integer = yes;
	return true;
}

/* The base that a number's first characters say; they are skipped. */
static unsigned int take_base(struct str *digits)
{
	char c = digits->n > 1 && digits->p[0] == '0' ? digits->p[1] | 32 : 0;
	unsigned int base = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 0;

	if (base)
		*digits = str_skip(*digits, 2);
	else if (c)
		base = 8;
	return base ? base : 10;
}

static bool read_integer(struct str text, struct andiron_value *ret)
{
	bool sign = text.n && (text.p[0] == '-' || text.p[0] == '+');
	bool negative = sign && text.p[0] == '-';
	struct str digits = str_skip(text, sign);
	unsigned int base = take_base(&digits);
	uint64_t n = 0;

	if (!digits.n)
		return false;
	for (size_t i = 0; i < digits.n; i++) {
		unsigned int d = (unsigned int)ascii_hex_value(digits.p[i]);

		if (d >= base || __builtin_mul_overflow(n, base, &n) ||
		    __builtin_add_overflow(n, d, &n))
			return false;
	}
	if (n > (uint64_t)INT64_MAX + negative) {
		if (sign)
			return false;
		ret->kind = ANDIRON_VALUE_FLOAT;
		ret->number = (double)n;
	} else {
		ret->kind = ANDIRON_VALUE_INT;
	}
	ret->integer = (int64_t)(negative ? -n : n);
	return true;
}

static size_t skip_digits(struct str text, size_t at)
{
	while (at < text.n && ascii_is_digit(text.p[at]))
		at++;
	return at;
}

/* [-+] digits [. digits] [e [-+] digits], with a digit before the e. */
static bool looks_like_fraction(struct str text)
{
	size_t start = text.n && (text.p[0] == '-' || text.p[0] == '+');
	size_t at = skip_digits(text, start), whole = at - start, part = 0, before;

	if (at < text.n && text.p[at] == '.') {
		before = at + 1;
		at = skip_digits(text, before);
		part = at - before;
	}
	if (!whole && !part)
		return false;
	if (at == text.n || (text.p[at] | 32) != 'e')
		return at == text.n;
	at++;
	at += at < text.n && (text.p[at] == '-' || text.p[at] == '+');
	return at < text.n && skip_digits(text, at) == text.n;
}

static bool read_infinity(struct str text, struct andiron_value *ret)
{
	bool sign = text.n && (text.p[0] == '-' || text.p[0] == '+');
	bool nan = is_one_of(text, ".nan", ".NaN", ".NAN");

	if (!nan && !is_one_of(str_skip(text, sign), ".inf", ".Inf", ".INF"))
		return false;
	ret->kind = ANDIRON_VALUE_FLOAT;
	ret->number = nan ? (double)NAN : sign && text.p[0] == '-' ? -HUGE_VAL : HUGE_VAL;
	return true;
}

/* Underscores within a number count for nothing. */
static bool read_number(struct lang *l, struct str text, struct andiron_value *ret)
{
	char *copy = lang_array(l, char, text.n + 1);
	struct str bare = {copy, 0};

	if (!copy || !text.n || text.p[0] == '_')
		return false;
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] != '_')
			copy[bare.n++] = text.p[i];
	if (text.p[0] != '.' && read_integer(bare, ret))
		return true;
	if (read_infinity(text, ret))
		return true;
	if (text.p[0] == '.')
		bare = text;
	if (!looks_like_fraction(bare) || !eval_number(l, bare, false, ret))
		return false;
	if (ret->kind == ANDIRON_VALUE_INT) { /* 08 */
		ret->kind = ANDIRON_VALUE_FLOAT;
		ret->number = (double)ret->integer;
		ret->integer = 0;
	}
	return true;
}

struct moment {
	unsigned int year, month, day, hour, minute, second;
	struct str fraction, zone;
};

/* `least` to `most` digits; false if there are others. */
static bool take(struct str *rest, size_t least, size_t most, unsigned int *ret)
{
	size_t n = skip_digits(*rest, 0);

	if (n < least || n > most)
		return false;
	*ret = 0;
	for (size_t i = 0; i < n; i++)
		*ret = *ret * 10 + (unsigned int)(rest->p[i] - '0');
	*rest = str_skip(*rest, n);
	return true;
}

static bool take_char(struct str *rest, char c)
{
	if (!rest->n || rest->p[0] != c)
		return false;
	*rest = str_skip(*rest, 1);
	return true;
}

static unsigned int days_of(unsigned int year, unsigned int month)
{
	static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return month == 2 && leap ? 29 : days[month - 1];
}

static bool take_date(struct str *rest, struct moment *m)
{
	return take(rest, 4, 4, &m->year) && take_char(rest, '-') && take(rest, 1, 2, &m->month) &&
	       take_char(rest, '-') && take(rest, 1, 2, &m->day) && m->month >= 1 &&
	       m->month <= 12 && m->day >= 1 && m->day <= days_of(m->year, m->month);
}

static bool take_time(struct str *rest, struct moment *m)
{
	size_t n;

	if (!take(rest, 1, 2, &m->hour) || !take_char(rest, ':') || !take(rest, 1, 2, &m->minute) ||
	    !take_char(rest, ':') || !take(rest, 1, 2, &m->second))
		return false;
	if (m->hour > 23 || m->minute > 59 || m->second > 59)
		return false;
	if (!take_char(rest, '.'))
		return true;
	n = skip_digits(*rest, 0);
	m->fraction = str_first(*rest, n > 9 ? 9 : n);
	*rest = str_skip(*rest, n);
	while (m->fraction.n && m->fraction.p[m->fraction.n - 1] == '0')
		m->fraction.n--;
	return n > 0;
}

/* Z or +hh:mm; that of UTC is written Z. */
static bool take_zone(struct str *rest, struct moment *m)
{
	unsigned int hours, minutes;
	struct str zone = *rest;

	if (take_char(rest, 'Z'))
		return true;
	if (!take_char(rest, '+') && !take_char(rest, '-'))
		return false;
	if (!take(rest, 2, 2, &hours) || !take_char(rest, ':') || !take(rest, 2, 2, &minutes) ||
	    hours > 24 || minutes > 59)
		return false;
	if (hours || minutes)
		m->zone = str_first(zone, 6);
	return true;
}

static bool read_time(struct lang *l, struct str text, struct andiron_value *ret)
{
	struct moment m = {.zone = STR("Z"), .fraction = STR("")};
	struct str rest = text, copy;
	const char *made;

	if (!take_date(&rest, &m))
		return false;
	if (take_char(&rest, 'T') || take_char(&rest, 't')) {
		if (!take_time(&rest, &m) || !take_zone(&rest, &m))
			return false;
	} else if (take_char(&rest, ' ')) {
		if (!take_time(&rest, &m))
			return false;
	}
	if (rest.n)
		return false;
	made = arena_printf(l->arena, "%04u-%02u-%02uT%02u:%02u:%02u%s%.*s%.*s", m.year, m.month,
			    m.day, m.hour, m.minute, m.second, m.fraction.n ? "." : "",
			    STR_FMT(m.fraction), STR_FMT(m.zone));
	copy = str_of(made);
	l->no_memory |= !made;
	ret->kind = ANDIRON_VALUE_STRING;
	ret->string = (struct andiron_str){copy.p, copy.n};
	return made;
}

static bool keep(struct lang *l, struct str text, struct andiron_value *ret)
{
	struct str copy = lang_str(l, text);

	ret->kind = ANDIRON_VALUE_STRING;
	ret->string = (struct andiron_str){copy.p, copy.n};
	return copy.p;
}

static bool read_plain(struct lang *l, struct str text, struct andiron_value *ret)
{
	return is_null(text) || read_bool(text, ret) || read_time(l, text, ret) ||
	       read_number(l, text, ret) || (!l->no_memory && keep(l, text, ret));
}

static bool read_null(struct lang *l, struct str text, struct andiron_value *ret)
{
	return is_null(text);
}

static bool read_truth(struct lang *l, struct str text, struct andiron_value *ret)
{
	return read_bool(text, ret);
}

/* From 2^63 on a whole number is a FLOAT that keeps its bits. */
static bool read_whole(struct lang *l, struct str text, struct andiron_value *ret)
{
	return read_number(l, text, ret) && (ret->kind == ANDIRON_VALUE_INT || ret->integer);
}

static bool read_fraction(struct lang *l, struct str text, struct andiron_value *ret)
{
	if (!read_number(l, text, ret))
		return false;
	if (ret->kind == ANDIRON_VALUE_INT) {
		ret->kind = ANDIRON_VALUE_FLOAT;
		ret->number = (double)ret->integer;
		ret->integer = 0;
	}
	return true;
}

static const struct {
	const char *tag;
	bool (*read)(struct lang *l, struct str text, struct andiron_value *ret);
} types[] = {
	{YAML_TAG "null", read_null},       {YAML_TAG "bool", read_truth},
	{YAML_TAG "int", read_whole},       {YAML_TAG "float", read_fraction},
	{YAML_TAG "timestamp", read_time},
};

bool yaml_scalar_value(struct lang *l, const struct expr *e, const struct yaml_scalar *scalar,
		       struct andiron_value *ret, const char **ret_problem)
{
	struct str tag = str_of(scalar->tag);

	*ret = eval_value(e, ANDIRON_VALUE_NULL);
	*ret_problem = NULL;
	if (scalar->plain && (!tag.n || str_is(tag, "!")))
		return read_plain(l, scalar->text, ret);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (!str_is(tag, types[i].tag))
			continue;
		if (types[i].read(l, scalar->text, ret))
			return true;
		if (!l->no_memory)
			*ret_problem = "a value is not of the type that its !! says";
		return false;
	}
	if (!str_is(tag, YAML_TAG "binary"))
		return keep(l, scalar->text, ret);
	*ret_problem = "!!binary is not supported; encoding.from_base64 decodes a text";
	return false;
}

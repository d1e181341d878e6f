/* SPDX-License-Identifier: Apache-2.0 */
/* Selectors. Contract in selector.h. */
#include "k8s-discovery/roles/selector.h"

#include "base/ascii.h"

#include <errno.h>

struct scan {
	struct str rest;
	size_t length; /* of the whole text */
	struct error *err;
};

static size_t position(const struct scan *s)
{
	return s->length - s->rest.n + 1;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void skip_space(struct scan *s)
{
	while (s->rest.n && is_space(s->rest.p[0]))
		s->rest = str_skip(s->rest, 1);
}

static bool take(struct scan *s, const char *symbol)
{
	skip_space(s);
	if (!str_starts(s->rest, str_of(symbol)))
		return false;
	s->rest = str_skip(s->rest, strlen(symbol));
	return true;
}

static bool is_symbol(char c)
{
	return c == '=' || c == '!' || c == '(' || c == ')' || c == ',' || c == '>' || c == '<';
}

static struct str word(struct scan *s)
{
	size_t n = 0;
	struct str found;

	skip_space(s);
	while (n < s->rest.n && !is_space(s->rest.p[n]) && !is_symbol(s->rest.p[n]))
		n++;
	found = str_first(s->rest, n);
	s->rest = str_skip(s->rest, n);
	return found;
}

/* Letters, digits, and these within. */
static bool is_name(struct str s, const char *within, size_t most)
{
	if (s.n == 0 || s.n > most || !ascii_is_alnum(s.p[0]) || !ascii_is_alnum(s.p[s.n - 1]))
		return false;
	for (size_t i = 0; i < s.n; i++)
		if (!ascii_is_alnum(s.p[i]) && !strchr(within, s.p[i]))
			return false;
	return true;
}

static int check_key(const struct scan *s, struct str key)
{
	size_t slash = str_find(key, '/');
	struct str name = slash < key.n ? str_skip(key, slash + 1) : key;

	if (slash < key.n && !is_name(str_first(key, slash), "-.", 253))
		return error_set(s->err, -EINVAL,
				 "at character %zu: \"%.*s\" has a prefix that is not a DNS name",
				 position(s), STR_FMT(key));
	if (!is_name(name, "-_.", 63))
		return error_set(s->err, -EINVAL,
				 "at character %zu: \"%.*s\" is not the key of a label",
				 position(s), STR_FMT(key));
	return 0;
}

static int check_value(const struct scan *s, struct str value)
{
	if (value.n == 0 || is_name(value, "-_.", 63))
		return 0;
	return error_set(s->err, -EINVAL, "at character %zu: \"%.*s\" is not the value of a label",
			 position(s), STR_FMT(value));
}

static int check_set(struct scan *s)
{
	int r;

	if (!take(s, "("))
		return error_set(s->err, -EINVAL, "at character %zu: \"(\" is missing",
				 position(s));
	do {
		r = check_value(s, word(s));
		if (r < 0)
			return r;
	} while (take(s, ","));
	if (!take(s, ")"))
		return error_set(s->err, -EINVAL, "at character %zu: \")\" is missing",
				 position(s));
	return 0;
}

static int check_number(struct scan *s)
{
	uint64_t number;

	if (!str_u64(word(s), &number))
		return error_set(s->err, -EINVAL,
				 "at character %zu: after < and > an integer must follow",
				 position(s));
	return 0;
}

static int check_requirement(struct scan *s)
{
	bool absent = take(s, "!");
	struct str op;
	int r = check_key(s, word(s));

	if (r < 0 || absent)
		return r;
	if (take(s, "!=") || take(s, "==") || take(s, "="))
		return check_value(s, word(s));
	if (take(s, ">") || take(s, "<"))
		return check_number(s);
	op = word(s);
	if (op.n == 0)
		return 0;
	if (str_is(op, "in") || str_is(op, "notin"))
		return check_set(s);
	return error_set(s->err, -EINVAL,
			 "at character %zu: \"%.*s\" is none of =, ==, !=, in, notin, <, >",
			 position(s), STR_FMT(op));
}

int selector_check_labels(struct str text, struct error *err)
{
	struct scan s = {text, text.n, err};
	int r;

	if (str_trim(text).n == 0)
		return 0;
	do {
		r = check_requirement(&s);
		if (r < 0)
			return r;
	} while (take(&s, ","));
	skip_space(&s);
	if (s.rest.n)
		return error_set(err, -EINVAL, "at character %zu: a comma is missing",
				 position(&s));
	return 0;
}

static int check_term(struct str term, struct error *err)
{
	bool found = false;

	for (size_t i = 0; i < term.n; i++) {
		if (term.p[i] == '\\') {
			if (i + 1 == term.n || !strchr("\\,=", term.p[i + 1]))
				return error_set(err, -EINVAL,
						 "in \"%.*s\" a backslash stands before something "
						 "other than a backslash, a comma or =",
						 STR_FMT(term));
			i++;
		} else if (term.p[i] == '=') {
			found = true;
		}
	}
	return found ? 0
		     : error_set(err, -EINVAL, "\"%.*s\" has none of =, == and !=", STR_FMT(term));
}

int selector_check_fields(struct str text, struct error *err)
{
	while (text.n) {
		size_t n = 0;
		int r;

		while (n < text.n && text.p[n] != ',')
			n += text.p[n] == '\\' ? 2 : 1;
		r = n ? check_term(str_first(text, n), err) : 0;
		if (r < 0)
			return r;
		text = str_skip(text, n + 1);
	}
	return 0;
}

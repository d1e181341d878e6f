/* SPDX-License-Identifier: Apache-2.0 */
/* Works on libiberty's text, since its options know neither template arguments nor the parameters
 * of enclosing functions. One pass: a cursor copies or skips one bracket group at a time. The
 * characters < > ( ) are brackets unless they are part of "->" or of an operator's name. */
#include "symbolize/names/simplify.h"

#include "base/ascii.h"

#include <andiron/batch.h>
#include <errno.h>

#define MAX_DEPTH 256

static bool is_word(char c)
{
	return ascii_is_alnum(c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

/* The length of "operator" with its sign at position i, 0 if none is there. */
static size_t operator_length(struct str s, size_t i)
{
	static const char *const signs[] = {"()", "<=>", "<<=", ">>=", "->*", "<<",
					    ">>", "<=",  ">=",  "->",  "<",   ">"};
	struct str rest = str_skip(s, i);

	if (!str_starts(rest, STR("operator")) || (i && is_word(s.p[i - 1])))
		return 0;
	rest = str_skip(rest, 8);
	for (size_t k = 0; k < sizeof(signs) / sizeof(signs[0]); k++)
		if (str_starts(rest, str_of(signs[k])))
			return 8 + strlen(signs[k]);
	return 0;
}

struct brackets {
	char open[MAX_DEPTH];
	size_t depth;
};

/* Takes a bracket; `before` is the character in front of it. False if nesting is too deep. */
static bool take_bracket(struct brackets *b, char c, char before)
{
	bool arrow = c == '>' && (before == '-' || b->open[b->depth - 1] == '(');

	if (strchr("(<{[", c)) {
		if (b->depth == MAX_DEPTH)
			return false;
		b->open[b->depth++] = c;
		return true;
	}
	if (arrow) /* or "greater" in an expression */
		return true;
	/* "less" in an expression has no end of its own. */
	while (c == ')' && b->depth > 1 && b->open[b->depth - 1] == '<')
		b->depth--;
	b->depth--;
	return true;
}

/* The position behind the group that opens at i; s.n + 1 if it is not closed. */
static size_t skip_group(struct str s, size_t i)
{
	struct brackets b = {{s.p[i]}, 1};

	for (i++; i < s.n;) {
		size_t sign = operator_length(s, i);
		char c = s.p[i];

		if (sign) {
			i += sign;
			continue;
		}
		i++;
		if (!strchr("(<{[)>}]", c))
			continue;
		if (!take_bracket(&b, c, s.p[i - 2]))
			break;
		if (b.depth == 0)
			return i;
	}
	return s.n + 1;
}

/* Whether the '<' at i opens arguments of what was just written, and not a path like <T as Trait>
 * or <impl Trait for T>. */
static bool opens_arguments(struct str s, size_t i, const struct buf *out)
{
	char before = out->n ? out->p[out->n - 1] : ' ';

	if (str_starts(str_skip(s, i), STR("<impl ")))
		return false;
	return is_word(before) || before == ')' || before == '}' || before == ']' ||
	       before == '"' || before == ':';
}

/* Where a template's name ends in an operator's sign, libiberty writes a space before its
 * arguments. */
static size_t copy_operator(struct str s, size_t i, size_t n, bool arguments, struct buf *out)
{
	buf_append(out, s.p + i, n);
	i += n;
	if (!arguments && i < s.n && s.p[i] == ' ' && i + 1 < s.n && s.p[i + 1] == '<')
		i++;
	return !arguments && i < s.n && s.p[i] == '<' ? skip_group(s, i) : i;
}

static bool drop_arguments(struct str s, struct buf *out)
{
	for (size_t i = 0; i < s.n;) {
		size_t sign = operator_length(s, i);

		if (sign) {
			i = copy_operator(s, i, sign, false, out);
		} else if (s.p[i] == '<' && opens_arguments(s, i, out)) {
			i = skip_group(s, i);
			if (out->n >= 2 && out->p[out->n - 1] == ':')
				out->n -= 2; /* Rust's foo::<T> */
		} else {
			buf_putc(out, s.p[i++]);
		}
		if (i > s.n)
			return false;
	}
	return true;
}

/* Behind a parameter list: " const", " &" and the like. */
static size_t skip_qualifiers(struct str s, size_t i)
{
	static const char *const words[] = {" const", " volatile", " &&", " &"};

	for (size_t k = 0; k < sizeof(words) / sizeof(words[0]); k++)
		if (str_starts(str_skip(s, i), str_of(words[k])))
			return skip_qualifiers(s, i + strlen(words[k]));
	return i;
}

/* Whether the '(' at i opens the parameters of a function whose name ends here; *end is then where
 * they and their qualifiers end. */
static bool opens_parameters(struct str s, size_t i, const struct buf *out, size_t *end)
{
	struct str before = buf_str(out);
	char last = before.n ? before.p[before.n - 1] : ' ';

	if (str_starts(str_skip(s, i), STR("(anonymous")) || str_ends(before, STR("decltype")) ||
	    !(is_word(last) || strchr(">)]}<=!+-*/%&|^~", last)))
		return false;
	*end = skip_group(s, i);
	if (*end > s.n)
		return false;
	*end = skip_qualifiers(s, *end);
	return *end == s.n || str_starts(str_skip(s, *end), STR("::"));
}

static bool drop_parameters(struct str s, struct buf *out)
{
	for (size_t i = 0; i < s.n;) {
		size_t sign = operator_length(s, i), end;

		if (sign) {
			i = copy_operator(s, i, sign, true, out);
		} else if (s.p[i] == '(' && opens_parameters(s, i, out, &end)) {
			i = end;
		} else if (s.p[i] == '<' || s.p[i] == '{' || s.p[i] == '(') {
			end = skip_group(s, i);
			if (end > s.n)
				return false;
			buf_append(out, s.p + i, end - i);
			i = end;
		} else {
			buf_putc(out, s.p[i++]);
		}
	}
	return true;
}

int simplify(struct str name, uint32_t wish, struct buf *out)
{
	struct buf plain = BUF_NULL;
	size_t before = out->n;
	bool ok = true;
	int r;

	if (wish == ANDIRON_DEMANGLE_SIMPLIFIED)
		ok = drop_arguments(name, &plain);
	else
		buf_str_append(&plain, name);
	if (ok && wish != ANDIRON_DEMANGLE_FULL)
		ok = drop_parameters(buf_str(&plain), out);
	else if (ok)
		buf_str_append(out, buf_str(&plain));
	if (!ok || out->n == before) {
		out->n = before;
		buf_str_append(out, name);
	}
	r = plain.failed || out->failed ? -ENOMEM : 0;
	buf_free(&plain);
	return r;
}

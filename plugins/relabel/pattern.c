/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Alternatives are multiplied out, in order, into branches of literals with
 * wildcards between them. That keeps Go's choice (leftmost first) because
 * nothing before an alternative can be matched in two ways.
 *
 * In a branch each literal is looked for from the right: the rightmost place
 * makes every wildcard before it as long as can be, which is what greedy,
 * leftmost-first matching chooses; and if that does not fit, nothing does. A
 * literal is whole UTF-8 characters, so it is never found inside of one.
 */
#include "pattern.h"

#include "base/buf.h"
#include "base/check.h"
#include "base/cleanup.h"
#include "base/vec.h"

#include <errno.h>

#define BRANCHES_MAX 256
#define PARTS_MAX 32
#define TEXT_MAX 4096
#define DEPTH_MAX 32

/* A wildcard of at least `min` characters (not for the first part), and the
 * literal behind it. */
struct part {
	size_t min;
	struct buf literal;
};

/* A place in a branch: `offset` bytes into the literal of a part. */
struct place {
	uint32_t part;
	uint32_t offset;
};

struct span {
	bool closed;
	struct place open, close;
};

struct branch {
	struct part *parts;
	uint32_t n_parts;
	struct span groups[PATTERN_GROUPS];
};

struct branches {
	struct branch *p;
	size_t n;
	size_t capacity;
};

struct pattern {
	struct branches branches;
	uint32_t n_groups;
};

struct parser {
	struct str whole, rest;
	uint32_t n_groups;
	uint32_t depth;
	struct error *err;
};

static void branch_free(struct branch *b)
{
	for (uint32_t i = 0; i < b->n_parts; i++)
		buf_free(&b->parts[i].literal);
	free(b->parts);
}

static void branches_free(struct branches *all)
{
	vec_each (all, b)
		branch_free(b);
	vec_free(all);
}

void pattern_free(struct pattern *p)
{
	if (!p)
		return;
	branches_free(&p->branches);
	free(p);
}

static int outside(struct parser *p, const char *what)
{
	return error_set(
		p->err, -ENOTSUP,
		"regex \"%.*s\" is outside what this version matches: %s at byte %zu; it "
		"matches literals, alternatives of literals, .* and .+, and groups of these",
		STR_FMT(p->whole), what, p->whole.n - p->rest.n);
}

static int wrong(struct parser *p, const char *what)
{
	return error_set(p->err, -EINVAL,
			 "regex \"%.*s\" is not a regular expression: %s at byte %zu",
			 STR_FMT(p->whole), what, p->whole.n - p->rest.n);
}

static int add_part(struct branch *b, size_t min)
{
	struct part *parts;

	if (b->n_parts >= PARTS_MAX)
		return -E2BIG;
	parts = realloc(b->parts, (b->n_parts + 1) * sizeof(*parts));
	if (!parts)
		return -ENOMEM;
	b->parts = parts;
	b->parts[b->n_parts++] = (struct part){.min = min};
	return 0;
}

static struct place end_of(const struct branch *b)
{
	check(b->n_parts > 0);
	return (struct place){b->n_parts - 1, (uint32_t)b->parts[b->n_parts - 1].literal.n};
}

/* Appends `tail` to `b`. */
static int join(struct branch *b, const struct branch *tail)
{
	struct place at = end_of(b);
	int r = buf_str_append(&b->parts[at.part].literal, buf_str(&tail->parts[0].literal));

	for (uint32_t i = 1; !r && i < tail->n_parts; i++) {
		r = add_part(b, tail->parts[i].min);
		if (!r)
			r = buf_str_append(&b->parts[b->n_parts - 1].literal,
					   buf_str(&tail->parts[i].literal));
	}
	for (uint32_t g = 0; !r && g < PATTERN_GROUPS; g++) {
		struct span s = tail->groups[g];

		if (!s.closed)
			continue;
		s.open.offset += s.open.part ? 0 : at.offset;
		s.close.offset += s.close.part ? 0 : at.offset;
		s.open.part += at.part;
		s.close.part += at.part;
		b->groups[g] = s;
	}
	return r;
}

static int branches_add(struct branches *all)
{
	if (all->n >= BRANCHES_MAX)
		return -E2BIG;
	if (!vec_push(all, ((struct branch){0})))
		return -ENOMEM;
	return add_part(&all->p[all->n - 1], 0);
}

/* Each branch of `all` with each of `tails` behind it. */
static int multiply(struct branches *all, const struct branches *tails)
{
	struct branches product = {0};
	int r = 0;

	for (size_t i = 0; !r && i < all->n * tails->n; i++) {
		r = branches_add(&product);
		if (!r)
			r = join(&product.p[product.n - 1], &all->p[i / tails->n]);
		if (!r)
			r = join(&product.p[product.n - 1], &tails->p[i % tails->n]);
	}
	branches_free(r ? &product : all);
	if (!r)
		*all = product;
	return r;
}

static bool has_wildcard(const struct branches *all)
{
	vec_each (all, b) {
		if (b->n_parts > 1)
			return true;
	}
	return false;
}

static int add_literal(struct branches *all, char c)
{
	int r = 0;

	vec_each (all, b) {
		if (!r)
			r = buf_putc(&b->parts[b->n_parts - 1].literal, c);
	}
	return r;
}

static bool at(const struct parser *p, char c)
{
	return p->rest.n && p->rest.p[0] == c;
}

static bool at_quantifier(const struct parser *p)
{
	return at(p, '*') || at(p, '+') || at(p, '?') || at(p, '{');
}

static int parse_alternatives(struct parser *p, struct branches *all);

/* "(…)" or "(?:…)". */
static int parse_group(struct parser *p, struct branches *all)
{
	struct branches inside = {0};
	uint32_t group = 0;
	int r;

	if (p->depth >= DEPTH_MAX)
		return outside(p, "groups nested this deep");
	if (str_starts(p->rest, STR("(?:"))) {
		p->rest = str_skip(p->rest, 3);
	} else if (str_starts(p->rest, STR("(?"))) {
		return outside(p, "a flag or a named group (?");
	} else {
		p->rest = str_skip(p->rest, 1);
		group = ++p->n_groups;
		if (group >= PATTERN_GROUPS)
			return outside(p, "a sixteenth group");
	}
	p->depth++;
	r = parse_alternatives(p, &inside);
	p->depth--;
	if (!r && !at(p, ')'))
		r = wrong(p, "a missing )");
	if (!r && inside.n > 1 && has_wildcard(all))
		r = outside(p, "alternatives behind .* or .+");
	if (!r) {
		p->rest = str_skip(p->rest, 1);
		vec_each (&inside, b) {
			if (group)
				b->groups[group] = (struct span){true, {0, 0}, end_of(b)};
		}
		r = multiply(all, &inside);
	}
	branches_free(&inside);
	return r;
}

static int parse_dot(struct parser *p, struct branches *all)
{
	size_t min = 0;
	int r = 0;

	p->rest = str_skip(p->rest, 1);
	if (!at(p, '*') && !at(p, '+'))
		return outside(p, "a dot without * or +");
	min = at(p, '+');
	p->rest = str_skip(p->rest, 1);
	if (at_quantifier(p))
		return outside(p, "a quantifier behind another");
	vec_each (all, b) {
		if (!r)
			r = add_part(b, min);
	}
	return r;
}

/* A backslash before punctuation makes it itself; before a letter or digit it
 * is a class or an assertion. */
static int parse_escape(struct parser *p, struct branches *all)
{
	char c = p->rest.n > 1 ? p->rest.p[1] : 0;

	if (p->rest.n < 2)
		return wrong(p, "a trailing backslash");
	if ((unsigned char)c >= 0x80)
		return wrong(p, "a backslash before a character that is not ASCII");
	if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
		return outside(p, "an escape sequence");
	p->rest = str_skip(p->rest, 2);
	return add_literal(all, c);
}

static int parse_atom(struct parser *p, struct branches *all)
{
	char c = p->rest.p[0];
	int r = 0;

	if (c == '[')
		return outside(p, "a character class");
	if (c == '^' || c == '$')
		return outside(p, "an anchor");
	if (at_quantifier(p) && c != '{')
		return wrong(p, "nothing to repeat");
	if (c == '.')
		return parse_dot(p, all);
	if (c == '(') {
		r = parse_group(p, all);
	} else if (c == '\\') {
		r = parse_escape(p, all);
	} else if (c == '{') {
		return outside(p, "a brace");
	} else {
		p->rest = str_skip(p->rest, 1);
		r = add_literal(all, c);
	}
	return !r && at_quantifier(p) ? outside(p, "a quantifier that does not follow a dot") : r;
}

static int parse_sequence(struct parser *p, struct branches *all)
{
	int r = branches_add(all);

	while (!r && p->rest.n && !at(p, '|') && !at(p, ')'))
		r = parse_atom(p, all);
	return r;
}

static int parse_alternatives(struct parser *p, struct branches *all)
{
	for (;;) {
		struct branches one = {0};
		int r = parse_sequence(p, &one);

		if (!r && one.n + all->n > BRANCHES_MAX)
			r = -E2BIG;
		if (!r && !vec_reserve(all, one.n))
			r = -ENOMEM;
		if (r) {
			branches_free(&one);
			return r;
		}
		memcpy(all->p + all->n, one.p, one.n * sizeof(*one.p));
		all->n += one.n;
		vec_free(&one);
		if (!at(p, '|'))
			return 0;
		p->rest = str_skip(p->rest, 1);
	}
}

int pattern_compile(struct str text, struct pattern **ret, struct error *err)
{
	struct parser parser = {.whole = text, .rest = text, .err = err};
	struct pattern *p;
	int r;

	if (text.n > TEXT_MAX)
		return error_set(err, -E2BIG, "the regex is longer than %d bytes", TEXT_MAX);
	if (!str_utf8(text))
		return error_set(err, -EINVAL, "the regex is not UTF-8");
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	r = parse_alternatives(&parser, &p->branches);
	if (!r && parser.rest.n)
		r = wrong(&parser, "an unexpected )");
	if (r == -E2BIG)
		error_set(err, r,
			  "regex \"%.*s\" has more alternatives or wildcards than this version "
			  "matches (%d, %d)",
			  STR_FMT(text), BRANCHES_MAX, PARTS_MAX - 1);
	if (r) {
		pattern_free(p);
		return r;
	}
	p->n_groups = parser.n_groups + 1;
	*ret = p;
	return 0;
}

/* The rightmost place of `literal` that ends at or before `end`, or SIZE_MAX. */
static size_t find_last(struct str text, struct str literal, size_t end)
{
	for (size_t i = end < literal.n ? 0 : end - literal.n + 1; i-- > 0;)
		if (!literal.n || memcmp(text.p + i, literal.p, literal.n) == 0)
			return i;
	return SIZE_MAX;
}

/* Where each literal lies, into starts[]. */
static bool place_literals(const struct branch *b, struct str text, size_t *starts)
{
	struct str first = buf_str(&b->parts[0].literal);
	struct str last = buf_str(&b->parts[b->n_parts - 1].literal);
	size_t limit;

	starts[0] = 0;
	if (b->n_parts == 1)
		return str_eq(text, first);
	if (!str_starts(text, first) || !str_ends(text, last))
		return false;
	limit = text.n - last.n;
	starts[b->n_parts - 1] = limit;
	for (uint32_t i = b->n_parts - 1; i-- > 1;) {
		size_t min = b->parts[i + 1].min;

		limit = limit < min ? SIZE_MAX
				    : find_last(text, buf_str(&b->parts[i].literal), limit - min);
		if (limit == SIZE_MAX)
			return false;
		starts[i] = limit;
	}
	return limit >= first.n + b->parts[1].min;
}

bool pattern_match(const struct pattern *p, struct str text, struct match *ret)
{
	size_t starts[PARTS_MAX];

	vec_each (&p->branches, b) {
		check(b->n_parts > 0 && b->n_parts <= PARTS_MAX);
		if (!place_literals(b, text, starts))
			continue;
		ret->n_groups = p->n_groups;
		ret->groups[0] = text;
		for (uint32_t g = 1; g < p->n_groups; g++) {
			struct span s = b->groups[g];
			size_t open = starts[s.open.part] + s.open.offset;
			size_t close = starts[s.close.part] + s.close.offset;

			check(!s.closed || (open <= close && close <= text.n));
			ret->groups[g] =
				s.closed ? str_first(str_skip(text, open), close - open) : STR_NULL;
		}
		return true;
	}
	return false;
}

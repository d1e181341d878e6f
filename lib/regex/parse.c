/* SPDX-License-Identifier: Apache-2.0 */
/* The parser's loop and what all parts of it use. Contracts in program.h and parser.h. */
#include "regex/parser.h"

#include "base/check.h"
#include "base/hash.h"
#include "regex/unicode.h"

#include <errno.h>

#define TEXT_MAX  65536
#define SHOWN_MAX 60

void program_free(struct program *p)
{
	vec_each (&p->sets, set)
		vec_free(set);
	vec_free(&p->sets);
	vec_free(&p->code);
	vec_free(&p->names);
	arena_free(&p->arena);
}

int parser_wrong(struct parser *p, size_t at, size_t n, const char *reason)
{
	struct str piece = str_first(str_skip(p->whole, at), n < SHOWN_MAX ? n : SHOWN_MAX);
	struct str shown = str_first(p->whole, SHOWN_MAX * 4);

	while (piece.n && !str_utf8(piece))
		piece.n--;
	while (shown.n && !str_utf8(shown))
		shown.n--;
	if (piece.n)
		return error_set(p->err, -EINVAL, "regex \"%.*s\": %s at byte %zu: %.*s",
				 STR_FMT(shown), reason, at, STR_FMT(piece));
	return error_set(p->err, -EINVAL, "regex \"%.*s\": %s at byte %zu", STR_FMT(shown), reason,
			 at);
}

int parser_emit(struct parser *p, enum op op, int32_t x, int32_t y)
{
	if (p->program->code.n >= PROGRAM_MAX)
		return -E2BIG;
	return vec_push(&p->program->code, ((struct instruction){op, x, y})) ? 0 : -ENOMEM;
}

void parser_settle(struct parser *p)
{
	struct group *group = &p->groups.p[p->groups.n - 1];

	check(p->groups.n > 0);
	if (p->atom.present) {
		group->filled |= !p->atom.nullable;
		if (p->atom.product > group->product)
			group->product = p->atom.product;
	}
	p->atom.present = p->quantified = false;
}

void parser_atom(struct parser *p, size_t begin, uint32_t product, bool nullable)
{
	parser_settle(p);
	p->atom = (struct atom){true, begin, product, nullable};
}

struct set_probe {
	const struct program *program;
	const struct charset *set;
};

static bool same_set(const void *context, uint32_t position)
{
	const struct set_probe *probe = context;
	const struct charset *other = &probe->program->sets.p[position];

	return other->n == probe->set->n &&
	       (!other->n || memcmp(other->p, probe->set->p, other->n * sizeof(*other->p)) == 0);
}

/* The number of an equal set, which may be this one; takes it over. */
static int number_set(struct parser *p, struct charset *set, uint32_t *ret)
{
	uint64_t hash = hash_bytes(set->p, set->n * sizeof(*set->p));
	struct set_probe probe = {p->program, set};
	uint32_t at = index_find(&p->set_index, hash, same_set, &probe);

	if (at == INDEX_NONE) {
		at = (uint32_t)p->program->sets.n;
		if (!vec_reserve(&p->program->sets, 1) || index_add(&p->set_index, hash, at) < 0) {
			vec_free(set);
			return -ENOMEM;
		}
		p->program->sets.p[p->program->sets.n++] = *set;
	} else {
		vec_free(set);
	}
	check(at < p->program->sets.n);
	*ret = at;
	return 0;
}

int parser_emit_set(struct parser *p, struct charset *set)
{
	size_t begin = p->program->code.n;
	uint32_t number;
	int r;

	charset_clean(set);
	r = number_set(p, set, &number);
	if (!r)
		r = parser_emit(p, OP_SET, (int32_t)number, 0);
	if (!r)
		parser_atom(p, begin, 1, false);
	return r;
}

int parser_emit_rune(struct parser *p, uint32_t c)
{
	struct charset set = {0};
	int r = charset_add(&set, c, c);

	for (uint32_t f = rune_fold(c); !r && (p->flags & FLAG_FOLD) && f != c; f = rune_fold(f))
		r = charset_add(&set, f, f);
	if (r) {
		vec_free(&set);
		return r;
	}
	return parser_emit_set(p, &set);
}

uint32_t parser_next(struct parser *p)
{
	uint32_t c;

	check(p->rest.n > 0);
	p->rest = str_skip(p->rest, rune_decode(p->rest, &c));
	return c;
}

static int emit_assertion(struct parser *p, enum assertion assertion, size_t length)
{
	size_t begin = p->program->code.n;
	int r = parser_emit(p, OP_ASSERT, (int32_t)assertion, 0);

	p->program->asserts = true;
	p->rest = str_skip(p->rest, length);
	if (!r)
		parser_atom(p, begin, 1, true);
	return r;
}

static int emit_dot(struct parser *p)
{
	struct charset set = {0};
	int r = 0;

	p->rest = str_skip(p->rest, 1);
	if (!(p->flags & FLAG_DOT))
		r = charset_add(&set, '\n', '\n');
	if (!r)
		r = charset_negate(&set);
	if (r) {
		vec_free(&set);
		return r;
	}
	return parser_emit_set(p, &set);
}

/* "\Q…\E". Without an end it would swallow the anchor that Prometheus puts
 * behind a rule's expression, which it refuses. */
static int parse_quoted(struct parser *p)
{
	size_t at = parser_at(p);
	struct str quoted = str_skip(p->rest, 2), end = STR("\\E");
	size_t n = str_search(quoted, end);
	int r = 0;

	if (n == quoted.n)
		return parser_wrong(p, at, 2, "missing \\E");
	p->quantified = false;
	p->rest = quoted;
	while (!r && p->rest.n > quoted.n - n)
		r = parser_emit_rune(p, parser_next(p));
	p->rest = str_skip(p->rest, end.n);
	return r;
}

static int parse_backslash(struct parser *p)
{
	switch (p->rest.n > 1 ? p->rest.p[1] : 0) {
	case 'A':
		return emit_assertion(p, AT_TEXT_BEGIN, 2);
	case 'z':
		return emit_assertion(p, AT_TEXT_END, 2);
	case 'b':
		return emit_assertion(p, AT_WORD_EDGE, 2);
	case 'B':
		return emit_assertion(p, AT_NO_WORD_EDGE, 2);
	case 'Q':
		return parse_quoted(p);
	default:
		return parse_escape(p);
	}
}

static int parse_piece(struct parser *p)
{
	bool lines = p->flags & FLAG_LINES;

	switch (p->rest.p[0]) {
	case '(':
		return parse_open(p);
	case ')':
		return parse_close(p);
	case '|':
		return parse_bar(p);
	case '^':
		return emit_assertion(p, lines ? AT_LINE_BEGIN : AT_TEXT_BEGIN, 1);
	case '$':
		return emit_assertion(p, lines ? AT_LINE_END : AT_TEXT_END, 1);
	case '.':
		return emit_dot(p);
	case '[':
		return parse_bracket(p);
	case '\\':
		return parse_backslash(p);
	case '*':
	case '+':
	case '?':
	case '{':
		return parse_repeat(p);
	default:
		return parser_emit_rune(p, parser_next(p));
	}
}

static int parse_whole(struct parser *p)
{
	int r = 0;

	if (!vec_push(&p->groups, ((struct group){.product = 1})) ||
	    !vec_push(&p->program->names, STR_NULL))
		return -ENOMEM;
	p->program->n_groups = 1;
	while (!r && p->rest.n)
		r = parse_piece(p);
	if (!r && p->groups.n > 1)
		r = parser_wrong(p, p->groups.p[p->groups.n - 1].opened, 0, "missing closing )");
	if (!r)
		r = parse_alternatives(p, &p->groups.p[0]);
	return r ? r : parser_emit(p, OP_MATCH, 0, 0);
}

int program_parse(struct str text, struct program *ret, struct error *err)
{
	struct parser p = {
		.whole = text, .rest = text, .program = ret, .flags = FLAG_DOT, .err = err};
	int r;

	*ret = (struct program){.n_groups = 0};
	if (text.n > TEXT_MAX)
		return error_set(err, -E2BIG, "the regex is longer than %d bytes", TEXT_MAX);
	if (!str_utf8(text))
		return error_set(err, -EINVAL, "the regex is not UTF-8");
	r = parse_whole(&p);
	if (r == -E2BIG)
		error_set(err, r,
			  "regex \"%.*s\" is too large: written out it has more than %u steps, or "
			  "its classes more than %u ranges of characters; use fewer or smaller "
			  "repetitions and classes",
			  STR_FMT(str_first(text, SHOWN_MAX)), PROGRAM_MAX, RANGES_MAX);
	index_free(&p.set_index);
	vec_free(&p.groups);
	vec_free(&p.bars);
	return r;
}

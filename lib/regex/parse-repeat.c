/* SPDX-License-Identifier: Apache-2.0 */
/* Quantifiers. Contract in parser.h. What groups hold can depend on which
 * instructions two ways through a program share, so loops are built as Go builds
 * them: x* as a loop that is entered at its test, but as (x+)? if x can be empty. */
#include "regex/parser.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>

#define COUNT_MAX 1000u /* of one repetition and of nested ones together, as in Go */
#define NO_LIMIT  UINT32_MAX

struct counts {
	uint32_t min, max;
	bool too_large;
};

/* Makes room for one instruction at `at`. */
static int insert(struct parser *p, size_t at, struct instruction in)
{
	int r = parser_emit(p, OP_JUMP, 0, 0);
	struct instruction *code = p->program->code.p;

	if (r)
		return r;
	check(at < p->program->code.n);
	memmove(code + at + 1, code + at, (p->program->code.n - 1 - at) * sizeof(*code));
	code[at] = in;
	return 0;
}

static struct instruction split(int32_t in, int32_t out, bool lazy)
{
	return lazy ? (struct instruction){OP_SPLIT, out, in}
		    : (struct instruction){OP_SPLIT, in, out};
}

static int emit_plus(struct parser *p, size_t begin, bool lazy)
{
	struct instruction in = split(-(int32_t)(p->program->code.n - begin), 1, lazy);

	return parser_emit(p, OP_SPLIT, in.x, in.y);
}

static int emit_quest(struct parser *p, size_t begin, bool lazy)
{
	return insert(p, begin, split(1, (int32_t)(p->program->code.n - begin + 1), lazy));
}

static int emit_star(struct parser *p, size_t begin, bool lazy)
{
	int r;

	if (p->atom.nullable) {
		r = emit_plus(p, begin, lazy);
		return r ? r : emit_quest(p, begin, lazy);
	}
	r = insert(p, begin, split(1, (int32_t)(p->program->code.n - begin + 2), lazy));
	return r ? r : parser_emit(p, OP_JUMP, (int32_t)begin - (int32_t)p->program->code.n, 0);
}

/* n copies of the piece, each behind a way out to the end if `optional`. */
static int emit_copies(struct parser *p, const struct instruction *piece, size_t size, uint32_t n,
		       const bool *optional_lazy)
{
	size_t step = size + (optional_lazy ? 1 : 0);
	int r = 0;

	if (n > PROGRAM_MAX / (step + 1))
		return -E2BIG;
	for (uint32_t i = 0; !r && i < n; i++) {
		if (optional_lazy) {
			struct instruction in = split(1, (int32_t)((n - i) * step), *optional_lazy);

			r = parser_emit(p, OP_SPLIT, in.x, in.y);
		}
		for (size_t k = 0; !r && k < size; k++)
			r = parser_emit(p, (enum op)piece[k].op, piece[k].x, piece[k].y);
	}
	return r;
}

static int emit_counted(struct parser *p, struct counts counts, bool lazy)
{
	size_t begin = p->atom.begin, size = p->program->code.n - begin, last;
	struct instruction *piece = malloc((size + 1) * sizeof(*piece));
	int r;

	check(begin <= p->program->code.n);
	if (!piece)
		return -ENOMEM;
	if (size)
		memcpy(piece, p->program->code.p + begin, size * sizeof(*piece));
	p->program->code.n = begin;
	r = emit_copies(p, piece, size, counts.min, NULL);
	last = p->program->code.n - size;
	if (!r && counts.max == NO_LIMIT)
		r = emit_plus(p, last, lazy);
	else if (!r && counts.max > counts.min)
		r = emit_copies(p, piece, size, counts.max - counts.min, &lazy);
	free(piece);
	return r;
}

static int emit_repeat(struct parser *p, struct counts counts, bool lazy)
{
	size_t begin = p->atom.begin;

	if (counts.min == 0 && counts.max == NO_LIMIT)
		return emit_star(p, begin, lazy);
	if (counts.min == 1 && counts.max == NO_LIMIT)
		return emit_plus(p, begin, lazy);
	if (counts.min == 0 && counts.max == 1)
		return emit_quest(p, begin, lazy);
	if (counts.min == 1 && counts.max == 1)
		return 0;
	return emit_counted(p, counts, lazy);
}

/* A number without leading zeros off the front; false if there is none. */
static bool cut_number(struct str *rest, uint32_t *ret, bool *too_large)
{
	size_t n = 0;
	uint64_t value;

	while (n < rest->n && rest->p[n] >= '0' && rest->p[n] <= '9')
		n++;
	if (!n || (n > 1 && rest->p[0] == '0'))
		return false;
	if (!str_u64(str_first(*rest, n), &value) || value > COUNT_MAX) {
		*too_large = true;
		value = COUNT_MAX;
	}
	*ret = (uint32_t)value;
	*rest = str_skip(*rest, n);
	return true;
}

/* "{n}", "{n,}" or "{n,m}"; false for a brace that is itself. */
static bool cut_counts(struct str *rest, struct counts *ret)
{
	struct str s = str_skip(*rest, 1);
	struct counts c = {.max = NO_LIMIT};

	if (!cut_number(&s, &c.min, &c.too_large))
		return false;
	if (s.n && s.p[0] == ',') {
		s = str_skip(s, 1);
		if (s.n && s.p[0] != '}' && !cut_number(&s, &c.max, &c.too_large))
			return false;
	} else {
		c.max = c.min;
	}
	if (!s.n || s.p[0] != '}')
		return false;
	*rest = str_skip(s, 1);
	*ret = c;
	return true;
}

static bool cut_quantifier(struct parser *p, struct counts *ret)
{
	char c = p->rest.p[0];

	if (c == '{')
		return cut_counts(&p->rest, ret);
	ret->min = c == '+';
	ret->max = c == '?' ? 1 : NO_LIMIT;
	p->rest = str_skip(p->rest, 1);
	return true;
}

/* How often the innermost piece may stand in the program, 0: once more than is allowed. */
static uint32_t product_of(const struct parser *p, struct counts counts)
{
	uint32_t n = counts.max == NO_LIMIT ? counts.min : counts.max;

	if (counts.max == 0)
		return 1;
	if (n < 2)
		return p->atom.product;
	return n * p->atom.product <= COUNT_MAX ? n * p->atom.product : 0;
}

int parse_repeat(struct parser *p)
{
	size_t at = parser_at(p);
	bool braces = p->rest.p[0] == '{', lazy = p->flags & FLAG_LAZY;
	struct counts counts = {0};
	uint32_t product;
	int r;

	if (!cut_quantifier(p, &counts))
		return parser_emit_rune(p, parser_next(p));
	if (braces && (counts.too_large || counts.min > counts.max))
		return parser_wrong(p, at, parser_at(p) - at, "invalid repeat count");
	if (p->rest.n && p->rest.p[0] == '?') {
		p->rest = str_skip(p->rest, 1);
		lazy = !lazy;
	}
	if (p->quantified)
		return parser_wrong(p, at, parser_at(p) - at, "invalid nested repetition operator");
	if (!p->atom.present)
		return parser_wrong(p, at, parser_at(p) - at,
				    "missing argument to repetition operator");
	product = product_of(p, counts);
	if (!product)
		return parser_wrong(p, at, parser_at(p) - at, "invalid repeat count");
	r = emit_repeat(p, counts, lazy);
	if (r)
		return r;
	p->atom.product = product;
	p->atom.nullable |= counts.min == 0;
	p->quantified = true;
	return 0;
}

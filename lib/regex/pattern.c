/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in pattern.h. What the shape tells whole needs no automaton. */
#include "regex/pattern.h"

#include "base/buf.h"
#include "base/check.h"
#include "base/cleanup.h"
#include "regex/automaton.h"
#include "regex/program.h"
#include "regex/unicode.h"

#include <errno.h>
#include <stdlib.h>

/* --- The shape --- */

/* Most rules' expressions are a literal, `.*` or `.+` or neither, a literal, and groups around any
 * of it. Whether a text matches is then a comparison at its two ends, and the groups' positions are
 * known beforehand. */

/* Where a slot is: so many bytes from the text's beginning or end. */
struct place {
	uint32_t slot;
	bool from_end;
	size_t offset;
};

struct shape {
	bool whole;        /* describes all of the program, not only how it begins */
	bool any;          /* there is a `.*` or `.+` */
	size_t min;        /* of characters for it */
	struct buf prefix; /* of every text that matches */
	uint64_t tail;     /* its last eight bytes, which tell most names apart */
	struct buf suffix; /* where `any` */
	VEC(struct place) places;
};

static void shape_free(struct shape *s)
{
	buf_free(&s->prefix);
	buf_free(&s->suffix);
	vec_free(&s->places);
}

static bool is_literal(const struct charset *set)
{
	/* What is no character matches U+FFFD, too, and is written otherwise. */
	return set->n == 1 && set->p[0].first == set->p[0].last && set->p[0].first != RUNE_ERROR &&
	       (set->p[0].first < 0xd800 || set->p[0].first > 0xdfff);
}

static bool is_any(const struct program *p, struct instruction in)
{
	const struct charset *set = in.op == OP_SET ? &p->sets.p[in.x] : NULL;

	return set && set->n == 1 && set->p[0].first == 0 && set->p[0].last == RUNE_MAX;
}

/* The number of instructions of a `.*` or `.+` at `at`, 0 if there is none. */
static size_t any_at(const struct program *p, size_t at, size_t *ret_min)
{
	const struct instruction *in = p->code.p + at;
	size_t left = p->code.n - at;
	bool plus = left > 2 && is_any(p, in[0]) && in[1].op == OP_SPLIT &&
		    (in[1].x == -1 || in[1].y == -1);
	bool star = left > 3 && in[0].op == OP_SPLIT && (in[0].x == 3 || in[0].y == 3) &&
		    is_any(p, in[1]) && in[2].op == OP_JUMP && in[2].x == -2;

	*ret_min = plus;
	return plus ? 2 : star ? 3 : 0;
}

static int add_place(struct shape *s, uint32_t slot)
{
	struct place place = {slot, s->any, s->any ? s->suffix.n : s->prefix.n};

	return vec_push(&s->places, place) ? 0 : -ENOMEM;
}

/* Whether the assertion at `at` says what is so anyway, a pattern being anchored. */
static bool is_idle(const struct program *p, const struct shape *s, size_t at)
{
	int32_t assertion = p->code.p[at].x;

	if (assertion == AT_TEXT_BEGIN)
		return !s->any && !s->prefix.n;
	if (assertion != AT_TEXT_END)
		return false;
	while (p->code.p[at].op == OP_SAVE ||
	       (p->code.p[at].op == OP_ASSERT && p->code.p[at].x == AT_TEXT_END))
		at++;
	return p->code.p[at].op == OP_MATCH;
}

/* One instruction; false where there is more than one way on. */
static bool take(const struct program *p, struct shape *s, size_t *at, int *ret_error)
{
	struct instruction in = p->code.p[*at];
	size_t n = 1;

	if (in.op == OP_SAVE) {
		*ret_error = add_place(s, (uint32_t)in.x);
	} else if (in.op == OP_SET && is_literal(&p->sets.p[in.x])) {
		*ret_error =
			rune_encode(p->sets.p[in.x].p[0].first, s->any ? &s->suffix : &s->prefix);
	} else if (in.op == OP_ASSERT) {
		n = is_idle(p, s, *at);
	} else {
		n = s->any ? 0 : any_at(p, *at, &s->min);
		s->any |= n > 0;
	}
	*at += n;
	return n > 0;
}

/* Walks the program as long as there is one way through it. 0 or -ENOMEM; to be freed in any
 * case. */
static int shape_find(const struct program *program, struct shape *ret)
{
	size_t at = 0;
	int r = 0;

	*ret = (struct shape){0};
	while (!r && take(program, ret, &at, &r))
		;
	if (r)
		return r;
	ret->whole = program->code.p[at].op == OP_MATCH;
	if (ret->prefix.n >= sizeof(ret->tail))
		memcpy(&ret->tail, ret->prefix.p + ret->prefix.n - sizeof(ret->tail),
		       sizeof(ret->tail));
	if (!ret->whole)
		ret->any = false;
	/* Offsets were counted from the suffix's beginning. */
	vec_each (&ret->places, place)
		if (place->from_end)
			place->offset = ret->suffix.n - place->offset;
	return 0;
}

/* Whether the text can match; if `whole`, whether it does. O(literals). */
static bool shape_fits(const struct shape *s, struct str text)
{
	struct str prefix = buf_str(&s->prefix), suffix = buf_str(&s->suffix);
	uint64_t tail;

	if (text.n < prefix.n)
		return false;
	if (prefix.n >= sizeof(tail)) {
		memcpy(&tail, text.p + prefix.n - sizeof(tail), sizeof(tail));
		if (tail != s->tail)
			return false;
	}
	if (prefix.n && memcmp(text.p, prefix.p, prefix.n) != 0)
		return false;
	if (!s->whole)
		return true;
	if (!s->any)
		return text.n == prefix.n;
	return text.n >= prefix.n + s->min + suffix.n && str_ends(text, suffix);
}

/* --- The pattern --- */

struct pattern {
	struct program program;
	struct shape shape;
	struct automaton automaton; /* unless shape.whole */
	size_t *slots;
	struct str *groups;
};

void pattern_free(struct pattern *p)
{
	if (!p)
		return;
	if (p->automaton.program)
		automaton_fini(&p->automaton);
	shape_free(&p->shape);
	program_free(&p->program);
	free(p->slots);
	free(p->groups);
	free(p);
}
DEFINE_CLEANUP(struct pattern *, pattern_free);

int pattern_compile(struct str text, struct pattern **ret, struct error *err)
{
	_cleanup_(pattern_freep) struct pattern *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	r = program_parse(text, &p->program, err);
	if (r)
		return r;
	r = shape_find(&p->program, &p->shape);
	if (!r && !p->shape.whole)
		r = automaton_init(&p->automaton, &p->program);
	if (r == -E2BIG)
		return error_set(err, r,
				 "regex \"%.*s\" tells more characters apart than the %u that are "
				 "allowed; use ranges or fewer classes",
				 STR_FMT(str_first(text, 60)), LETTERS_MAX);
	if (r)
		return r;
	p->slots = calloc(p->program.n_groups, 2 * sizeof(*p->slots));
	p->groups = calloc(p->program.n_groups, sizeof(*p->groups));
	if (!p->slots || !p->groups)
		return -ENOMEM;
	for (uint32_t i = 0; i < 2 * p->program.n_groups; i++)
		p->slots[i] = SLOT_NONE;
	*ret = take_ptr(p);
	return 0;
}

int pattern_test(struct pattern *p, struct str text)
{
	if (!shape_fits(&p->shape, text))
		return 0;
	return p->shape.whole ? 1 : automaton_test(&p->automaton, text);
}

static void place_groups(struct pattern *p, struct str text)
{
	p->slots[0] = 0;
	p->slots[1] = text.n;
	check(p->shape.whole);
	vec_each (&p->shape.places, place)
		p->slots[place->slot] = place->from_end ? text.n - place->offset : place->offset;
}

int pattern_match(struct pattern *p, struct str text, struct match *ret)
{
	int r = shape_fits(&p->shape, text);

	if (!text.p)
		text = STR("");
	if (r && p->shape.whole)
		place_groups(p, text);
	else if (r)
		r = automaton_match(&p->automaton, text, p->slots);
	if (r <= 0)
		return r;
	for (uint32_t i = 0; i < p->program.n_groups; i++) {
		size_t from = p->slots[2 * (size_t)i], to = p->slots[2 * (size_t)i + 1];

		p->groups[i] = from == SLOT_NONE || to == SLOT_NONE
				       ? STR_NULL
				       : (struct str){text.p + from, to - from};
	}
	*ret = (struct match){p, p->groups, p->program.n_groups};
	return 1;
}

struct str pattern_group_name(const struct pattern *p, uint32_t group)
{
	check(group < p->program.n_groups);
	return p->program.names.p[group];
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The state of parsing a regular expression, for parse.c, parse-group.c and parse-class.c only.
 * Nothing recurses: open groups lie on a stack of their own, because a rule may be as deep as it is
 * long. */
#pragma once

#include "base/index.h"
#include "regex/program.h"

#define FLAG_FOLD  1u /* (?i) */
#define FLAG_LINES 2u /* (?m) */
#define FLAG_DOT   4u /* (?s): dot matches newlines */
#define FLAG_LAZY  8u /* (?U) */

/* What a quantifier would repeat: the piece from `begin` to the program's end. */
struct atom {
	bool present;
	size_t begin;
	uint32_t product; /* of the counts of nested repetitions in it */
	bool nullable;    /* can match nothing, as far as its form tells */
};

struct group {
	size_t opened;    /* byte of the text, for messages */
	size_t begin;     /* instruction */
	size_t bars;      /* first of its alternatives' ends in `bars` */
	uint32_t capture; /* 0: none */
	uint32_t flags;   /* of what is around it */
	uint32_t product;
	bool filled;   /* the alternative that is being read cannot match nothing */
	bool nullable; /* one before it can */
};

struct parser {
	struct str whole, rest;
	struct program *program;
	struct index set_index;
	VEC(struct group) groups; /* the first is the whole expression */
	VEC(size_t) bars;         /* instructions at which a | stands */
	struct atom atom;
	bool quantified; /* what stands right before is a quantifier */
	uint32_t flags;
	size_t n_ranges; /* that classes have named so far */
	struct error *err;
};

#define RANGES_MAX (1u << 18)

static inline size_t parser_at(const struct parser *p)
{
	return p->whole.n - p->rest.n;
}

/* Sets the error: `reason`, the byte, and the `n` bytes there that are meant (0: none). Returns
 * -EINVAL. */
int parser_wrong(struct parser *p, size_t at, size_t n, const char *reason);

/* Appends an instruction. 0, -E2BIG or -ENOMEM. */
int parser_emit(struct parser *p, enum op op, int32_t x, int32_t y);

/* Appends an OP_SET as the next atom. Takes the set over, also on failure. */
int parser_emit_set(struct parser *p, struct charset *set);

/* The same for a character, and in its other cases under (?i). */
int parser_emit_rune(struct parser *p, uint32_t c);

/* Tells that what was appended from `begin` on can be repeated. */
void parser_atom(struct parser *p, size_t begin, uint32_t product, bool nullable);

/* The last atom is not going to be repeated: its group takes note of it. */
void parser_settle(struct parser *p);

/* Takes the next character of the text, which is UTF-8 and not at its end. */
uint32_t parser_next(struct parser *p);

/* parse-group.c: at "(", ")" and "|". */
int parse_open(struct parser *p);
int parse_close(struct parser *p);
int parse_bar(struct parser *p);
/* Joins the alternatives of the innermost group. */
int parse_alternatives(struct parser *p, const struct group *group);

/* parse-repeat.c: at "*", "+", "?" or "{"; a brace that counts nothing is itself. */
int parse_repeat(struct parser *p);

/* parse-class.c: at "[", and at "\" where a character or a class of characters is meant. */
int parse_bracket(struct parser *p);
int parse_escape(struct parser *p);

/* SPDX-License-Identifier: Apache-2.0 */
/* A regular expression as a program, the way Thompson wrote them. Targets are relative to the
 * instruction itself, so that a piece of program means the same wherever it stands: repeating it is
 * copying it.
 *
 * A piece is entered at its first instruction and left at the one behind its last. The whole ends
 * with OP_MATCH. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"
#include "regex/charset.h"

enum op {
	OP_SET,    /* one character of sets[x], then the next instruction */
	OP_SPLIT,  /* +x is tried first, then +y */
	OP_JUMP,   /* +x */
	OP_SAVE,   /* notes the position in slot x: 2 · group, and one more for its end */
	OP_ASSERT, /* goes on only where assertion x holds */
	OP_MATCH,
};

enum assertion {
	AT_TEXT_BEGIN,
	AT_TEXT_END,
	AT_LINE_BEGIN,
	AT_LINE_END,
	AT_WORD_EDGE, /* by ASCII's letters, digits and underscore */
	AT_NO_WORD_EDGE,
};

struct instruction {
	uint32_t op;
	int32_t x, y;
};

struct program {
	VEC(struct instruction) code;
	VEC(struct charset) sets; /* clean */
	uint32_t n_groups;        /* with group 0, the whole match */
	VEC(struct str) names;    /* of the groups, by number; empty: no name */
	struct arena arena;       /* holds the names */
	bool asserts;             /* has an OP_ASSERT */
};

#define PROGRAM_MAX 32768u /* instructions */

void program_free(struct program *p);

/* Go's syntax, dot matching newlines too. 0, -EINVAL for what Go refuses, with byte and reason;
 * -E2BIG for what would need more than PROGRAM_MAX, or names too many ranges of characters;
 * -ENOMEM. The program is to be freed in any case. Source: the documentation of Go's regexp/syntax.
 */
int program_parse(struct str text, struct program *ret, struct error *err);

/* SPDX-License-Identifier: Apache-2.0 */
/* What a formatter reads: the tokens of a source that parses, without TERMINATORs, and the comments
 * that the scanner skips. Both point into the source. */
#pragma once

#include "base/vec.h"
#include "host/lang/syntax/scan.h"

struct lexeme {
	uint8_t kind; /* TOKEN_*; EOF stands at the end */
	struct str text;
	size_t offset;
	uint32_t line, end_line; /* of its first and last byte */
};

struct comment {
	struct str text; /* carriage returns included, but not those at the end of a line comment */
	size_t offset;
	uint32_t line, end_line;
	bool follows; /* the comment before ends on this line or the one above, no token between */
};

struct lexemes {
	VEC(struct lexeme) tokens;
	VEC(struct comment) comments;
};

/* Reads up to an illegal token, which counts as the end. False when memory is short. */
bool lexemes_read(struct lexemes *x, const struct source *source);
void lexemes_free(struct lexemes *x);

static inline bool comment_is_block(const struct comment *c)
{
	return c->text.p[1] == '*';
}

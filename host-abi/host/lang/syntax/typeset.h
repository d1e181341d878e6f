/* SPDX-License-Identifier: Apache-2.0 */
/* Puts tokens and the comments between them into a layout. Comments are no part of the tree that is
 * walked, so each is put before the first token that stands behind it in the source. Where a token
 * stands is exact after typeset_at, and else guessed: behind the token before. The guess decides
 * where Alloy's formatter moves some comments to, so it is made the same way.
 *
 * Spaces are held back until the next token: comments swallow and replace some of them. */
#pragma once

#include "host/lang/syntax/layout.h"
#include "host/lang/syntax/lexemes.h"

enum {
	SPACE_NONE, /* one that a comment has dropped */
	SPACE_BLANK,
	SPACE_CELL, /* ends a cell */
	SPACE_LINE,
	SPACE_BREAK, /* ends a line and all columns */
	SPACE_INDENT,
	SPACE_UNINDENT,
};

#define TYPESET_MAX_HELD 16

struct typeset {
	struct layout layout;
	const struct lexemes *lexemes;
	size_t n_comments;     /* written */
	size_t offset;         /* where the next token stands in the source */
	uint32_t line;         /* likewise */
	uint32_t written_line; /* of the source: where the last token or comment ended */
	unsigned int indent;
	uint8_t held[TYPESET_MAX_HELD]; /* spaces */
	unsigned int n_held;
	bool started; /* something was written */
	bool at_line_start;
	bool behind_integer; /* a dot here would make it a fraction */
	bool failed;         /* no memory */
	struct buf scratch;
};

struct typeset typeset_into(struct buf *out, const struct lexemes *lexemes);
void typeset_free(struct typeset *t);

void typeset_space(struct typeset *t, uint8_t space);
/* The next token is this one. */
void typeset_at(struct typeset *t, const struct lexeme *token);
/* A token, or a name of several. */
void typeset_text(struct typeset *t, struct str text);
/* Comments that are left. 0, -ENOMEM or -E2BIG. */
int typeset_finish(struct typeset *t);

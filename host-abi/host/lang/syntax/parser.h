/* SPDX-License-Identifier: Apache-2.0 */
/* Within the parser: its state, shared by statements (parse.c) and expressions (parse-expr.c). */
#pragma once

#include "host/lang/syntax/parse.h"
#include "host/lang/syntax/scan.h"

struct parser {
	struct lang *l;
	struct scanner scanner; /* behind `token` */
	struct token token;
	struct token before;
	uint32_t error_line; /* of the last error, 0: none yet */
	uint32_t n_errors;
	unsigned int depth;
	unsigned int braces; /* objects that are open */
	size_t n_nodes;
};

/* Bytes from `start` to the end of the token before. */
static inline uint32_t parser_length(const struct parser *p, const char *start)
{
	return (uint32_t)(p->before.text.p + p->before.text.n - start);
}

/* Whether an error of that line is the first. */
bool parser_first(struct parser *p, uint32_t line);

#define parser_error(p, at, hint, ...)                                                             \
	do {                                                                                       \
		if (parser_first((p), (at).line))                                                  \
			lang_error((p)->l, (at), (hint), __VA_ARGS__);                             \
	} while (0)

/* Moves to the next token and reports an illegal one. */
void parser_advance(struct parser *p);
/* Moves past a token of that kind; else false and nothing happens. */
bool parser_accept(struct parser *p, uint8_t kind);
/* The same; else an error: `what` was expected. */
bool parser_expect(struct parser *p, uint8_t kind, const char *what);
void parser_unexpected(struct parser *p, const char *what);

/* One level down, or false and an error; parser_leave comes back up. */
bool parser_enter(struct parser *p);
void parser_leave(struct parser *p);

/* Counts a node; false, and an error, when there are too many. */
bool parser_count(struct parser *p);

/* What comes behind the token, which is a TERMINATOR. */
enum { AHEAD_OTHER, AHEAD_END, AHEAD_ARGUMENT, AHEAD_BLOCK };
int parser_ahead(const struct parser *p);

/* An expression, or NULL after an error. */
struct expr *parser_expression(struct parser *p);

/* SPDX-License-Identifier: Apache-2.0 */
/* The scanner: Alloy's lexical rules, exactly. Where a line ends after something that can end a
 * statement, a TERMINATOR token stands, also inside brackets. Comments vanish.
 *
 * A scanner is a value: a copy of it looks ahead. It reports nothing itself;
 * an ILLEGAL token carries the problem.
 *
 * Source: grafana/alloy, syntax/scanner and syntax/token. */
#pragma once

#include "host/diag.h"

enum {
	TOKEN_EOF,
	TOKEN_ILLEGAL,
	TOKEN_TERMINATOR,
	TOKEN_IDENT,
	TOKEN_NUMBER,
	TOKEN_STRING, /* "…", text with its quotes */
	TOKEN_RAW,    /* `…` */
	TOKEN_NULL,
	TOKEN_TRUE,
	TOKEN_FALSE,
	TOKEN_OR,
	TOKEN_AND,
	TOKEN_EQ,
	TOKEN_NE,
	TOKEN_LT,
	TOKEN_LE,
	TOKEN_GT,
	TOKEN_GE,
	TOKEN_ADD,
	TOKEN_SUB,
	TOKEN_MUL,
	TOKEN_DIV,
	TOKEN_MOD,
	TOKEN_POW,
	TOKEN_NOT,
	TOKEN_ASSIGN,
	TOKEN_LBRACE,
	TOKEN_RBRACE,
	TOKEN_LPAREN,
	TOKEN_RPAREN,
	TOKEN_LBRACKET,
	TOKEN_RBRACKET,
	TOKEN_COMMA,
	TOKEN_DOT,
};

struct token {
	uint8_t kind;
	struct str text; /* as written; within the source */
	struct place place;
	const char *problem; /* ILLEGAL: what is wrong */
	const char *hint;    /* and what to do, or NULL */
};

struct scanner {
	const struct source *source;
	size_t at;
	size_t line_start;
	uint32_t line;
	bool ends; /* a line end here is a TERMINATOR */
};

/* The source is well-formed UTF-8 under 4 GiB. A byte order mark in front is skipped. */
struct scanner scanner_of(const struct source *source);

/* The next token; EOF for ever at the end. O(its length and the blanks before it). */
struct token scan(struct scanner *s);

/* Whether all of it is one identifier (a keyword is none). */
bool scan_is_ident(struct str s);

/* Bytes of the escape sequence at the front of s, which begins with a backslash, and the code point
 * (or, from \x and octal, the byte) it stands for; 0 if it is none. */
size_t scan_escape(struct str s, uint32_t *ret, bool *ret_byte);

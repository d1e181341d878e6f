/* SPDX-License-Identifier: Apache-2.0 */
/* The parser: recursive descent, precedence climbing, one token of context (and copies of the
 * scanner where more is needed to guess what was meant).
 *
 *     Body    = [ Stmt { TERMINATOR Stmt } ]
 *     Stmt    = IDENT "=" Expr | Name [ STRING ] "{" Body "}"
 *     Name    = IDENT { "." IDENT }
 *     Unary   = ( "!" | "-" ) Unary | Primary { "." IDENT | "[" Expr "]" | "(" [ List ] ")" }
 *     Primary = IDENT | literal | "(" Expr ")" | "[" [ List ] "]" | "{" [ Fields ] "}"
 *     List    = Expr { "," Expr } [ "," ]
 *     Fields  = Field { "," Field } [ "," ]      Field = ( STRING | RAW | IDENT ) "=" Expr
 *
 * Binary operators, weakest first: || ; && ; == != < <= > >= ; + - ; * / % ;
 * ^ (to the right). After an error it goes on with what looks like the next
 * statement, and reports at most one error of a line.
 *
 * Source: grafana/alloy, syntax/parser. */
#pragma once

#include "host/lang/lang.h"
#include "host/lang/syntax/tree.h"

/* Levels of brackets, blocks and operators. */
#define PARSE_MAX_DEPTH 100
/* Errors of one source, after which it is taken to end. */
#define PARSE_MAX_ERRORS 100
/* Expressions and statements of one source. */
#define PARSE_MAX_NODES 200000
/* Bytes of one source. */
#define PARSE_MAX_SOURCE ((size_t)16 << 20)

/* Whether a source can be read at all; else why not is reported. */
bool parse_is_text(struct lang *l, const struct source *source);

/* The statements of a source that is well-formed UTF-8; those with errors are left out. NULL: none.
 */
struct stmt *parse_source(struct lang *l, const struct source *source);

/* A source that is one expression (an option's default); NULL on error. */
struct expr *parse_expression(struct lang *l, const struct source *source);

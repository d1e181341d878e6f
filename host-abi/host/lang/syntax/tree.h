/* SPDX-License-Identifier: Apache-2.0 */
/* The tree that the parser makes of a file: statements and expressions, each with its place,
 * nothing looked up or computed. Whatever holds several things chains them by `next`. The depth of
 * an expression is bounded, so that what walks it may recurse. */
#pragma once

#include "host/diag.h"

enum {
	EXPR_NULL,
	EXPR_BOOL,   /* text: true, false */
	EXPR_NUMBER, /* text: as written */
	EXPR_STRING, /* text: decoded */
	EXPR_NAME,   /* text */
	EXPR_LIST,   /* items */
	EXPR_MAP,    /* items: FIELDs */
	EXPR_FIELD,  /* text: key; left: value */
	EXPR_ACCESS, /* left.text */
	EXPR_INDEX,  /* left[right] */
	EXPR_CALL,   /* left(items) */
	EXPR_UNARY,  /* op left */
	EXPR_BINARY, /* left op right */
	EXPR_KINDS,
};

struct expr {
	uint8_t kind;
	uint8_t op;     /* TOKEN_* of scan.h */
	uint16_t depth; /* 1 + that of the deepest part */
	uint32_t n_items;
	struct place place;
	struct str text;
	struct expr *left, *right;
	struct expr *items;
	struct expr *next;
};

struct stmt {
	bool block; /* NAME "label" { body }, else NAME = value */
	bool labelled;
	bool broken;     /* behind the name stands an error, which was reported */
	struct str name; /* "pyroscope.ebpf" */
	struct str label;
	struct place place; /* of the name */
	struct place label_place;
	struct expr *value;
	struct stmt *body;
	struct stmt *next;
};

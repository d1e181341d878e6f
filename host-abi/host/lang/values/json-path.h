/* SPDX-License-Identifier: Apache-2.0 */
/* The paths of json_path: text → steps → what they find. They are the part of JSONPath that people
 * write:
 *
 *     $ @ .name name ['name'] [0] [-1] [1:3] [::2] [0,'a'] * .* [*] ..name ..* ..[0]
 *     [?(@.a.b[0] == "x" && !@.c || $.d < 3)]
 *
 * What the library that Alloy uses has beyond that (regular expressions, functions, arithmetic) is
 * refused by name. The members of an object come as the document has them; there they come in no
 * order.
 *
 * Source: goessner.net/articles/JsonPath; github.com/ohler55/ojg/jp, as it behaves. */
#pragma once

#include "host/lang/values/eval.h"

enum json_path_kind {
	PATH_SELF,   /* $ or @ */
	PATH_NAME,   /* name */
	PATH_INDEX,  /* from */
	PATH_SLICE,  /* from, to, by */
	PATH_UNION,  /* of */
	PATH_ALL,    /* the items of a list, the members of an object */
	PATH_DEEP,   /* everything within, and the value itself */
	PATH_FILTER, /* condition */
};

struct json_path {
	uint8_t kind; /* enum json_path_kind */
	struct str name;
	int64_t from, to, by;
	struct json_path *of; /* NAMEs and INDEXes */
	const struct json_path_condition *condition;
	struct json_path *next;
};

/* A value; or the one that a path of NAMEs and INDEXes leads to. */
struct json_path_operand {
	enum { OPERAND_VALUE, OPERAND_ITEM, OPERAND_DOCUMENT } from;
	struct andiron_value value;
	const struct json_path *path;
};

enum json_path_test {
	CONDITION_AND,
	CONDITION_OR,
	CONDITION_NOT,    /* left */
	CONDITION_EXISTS, /* a */
	CONDITION_EQ,     /* a and b; so the others */
	CONDITION_NE,
	CONDITION_LT,
	CONDITION_LE,
	CONDITION_GT,
	CONDITION_GE,
};

struct json_path_condition {
	uint8_t kind; /* enum json_path_test */
	const struct json_path_condition *left, *right;
	struct json_path_operand a, b;
};

/* The steps, or NULL for an empty text. False after an error at the call's second argument. */
bool json_path_parse(struct lang *l, const struct expr *e, struct str text,
		     const struct json_path **ret);

/* A LIST of what the path finds in the document. False after an error: the work is bounded. */
bool json_path_find(struct lang *l, const struct expr *e, const struct json_path *path,
		    const struct andiron_value *document, struct andiron_value *ret);

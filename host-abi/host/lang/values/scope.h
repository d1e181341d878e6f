/* SPDX-License-Identifier: Apache-2.0 */
/* Scopes: what a name means at one place of a configuration. The top of the files is a scope, and
 * so is each instance of a custom component (declare) and each round of a foreach. The ids of what
 * stands in a scope begin with its prefix ("pods.default/"), so that two instances of one declare
 * do not meet.
 *
 * Arguments, exports and variables are bindings: expressions that are evaluated when they are first
 * asked for, in the scope in which they were written. So their order in the files does not matter,
 * each is evaluated once however often it is named, and a circle of them is found. What fails while
 * l->early is set is evaluated again later, when more has a name and findings are told. */
#pragma once

#include "host/lang/lang.h"
#include "host/lang/syntax/tree.h"

#include <andiron/value.h>

/* Of values that are evaluated within each other, by the depth of their expressions: what recurses
 * here has a stack that is bounded. */
#define VALUE_DEPTH_MAX 1000

struct scope;

struct binding {
	struct str name;
	const struct expr *expr; /* NULL: the value is known */
	const struct scope *scope;
	struct andiron_value value;
	const struct stmt *file; /* a local.file: the value is the content of what `expr` names */
	const char *path;        /* of that file, once it was to be read */
	uint64_t hash;           /* of what it held, as file_content_hash has it */
	const char *waits_for;     /* the component whose value it needs first */
	size_t first_use, end_use; /* its part of l->value_uses */
	uint32_t early;            /* the early evaluation in which it failed last */
	uint8_t state;
};

/* Custom components that can be named: those that a file or a body declares, and what it imports.
 * A declare sees those of the declares around it; a module sees its own only. */
struct space {
	const struct space *around;
	const char *folder;           /* of the module's file; NULL: of the expression's file */
	uint32_t fetched;             /* a module that this component - 1 supplies, or 0 … */
	struct str url;               /* … and its URL, if it has one that is known */
	const struct space *importer; /* who imports this module */
	bool seen;                    /* what it declares has been looked for */
	bool has_local;               /* a module with that label */
	struct declaration *declarations;
	struct import *imports;
};

struct scope {
	/* Of a foreach, or of a declare in its template: its names are seen, too. */
	const struct scope *around;
	struct space *space;
	const char *prefix;
	bool custom;
	struct binding *arguments; /* of a custom component: argument.NAME.value */
	size_t n_arguments;
	struct binding *variable; /* of a foreach, or NULL */
	struct draft_item *item;  /* what stands here is made of it (draft.h), or NULL */
	unsigned int depth;
};

/* An instance of a custom component. */
struct custom {
	const char *id;
	struct binding *exports;
	size_t n_exports;
	/* The import that has not brought its declare yet, or NULL; what stands in its block. */
	const char *waits_for;
	uint32_t fetched; /* that import + 1, also once it has, or 0 */
	const struct stmt *body;
	const struct scope *scope;
};

/* What a path of names ("a.b.c") means in the scope l->scope. */
struct meaning {
	uint32_t node;           /* a component's, or INDEX_NONE */
	struct custom *custom;   /* an instance of a custom component, or NULL */
	struct binding *binding; /* an argument or a variable, or NULL */
	bool lost;               /* a block that was refused: who names it is not told again */
	struct str rest;         /* what follows, with its dot, or nothing */
};

/* False if it means nothing here. The longest id counts, and the innermost scope. */
bool scope_find(struct lang *l, struct str path, struct meaning *ret);

/* Whether the path leads into a value rather than naming it: x.member of a variable x. */
bool scope_leads_inside(struct lang *l, struct str path);

/* What is evaluated from here on has a part of l->value_uses of its own, which ends with the next
 * one: the former window, to be put back. */
uint32_t scope_window(struct lang *l);

/* Adds to l->value_uses that the value of a component is named, once in a window. O(1) */
void scope_names_value(struct lang *l, const struct value_use *use);

/* The binding's value; false after an error, which is reported once. Whose values it names is told
 * to each who asks. O(what it names) where it is known. */
bool binding_value(struct lang *l, struct binding *b, const struct expr *e,
		   struct andiron_value *ret);

/* The one of that name among n, or NULL. */
struct binding *binding_find(struct binding *all, size_t n, struct str name);

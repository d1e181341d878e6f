/* SPDX-License-Identifier: Apache-2.0 */
/* What the stages of the configuration language share. Text goes through
 *
 *     syntax/scan.h    characters → tokens
 *     syntax/parse.h   tokens → tree (tree.h)
 *     values/scope.h   what a name means where it stands
 *     values/eval.h    expressions → values
 *     bind.h           a block's body → a component's arguments
 *     draft.h          blocks → nodes and edges → the plan
 *
 * Everything lives in the plan's arena. A stage that fails says so in `diags` and goes on where it
 * can; running out of memory sets `no_memory`, which plan_build looks at once at the end. */
#pragma once

#include "host/diag.h"
#include "host/lang/values/names.h"
#include "host/registry.h"

struct scope;
struct custom;
struct supplied;

/* That a component names another's value, or looks into its targets. */
struct value_use {
	uint32_t node; /* whose value it is */
	struct place place;
	/* Of targets: their export, and the component that keeps them (foreach-items.h). */
	const char *export_name, *list;
};

/* A value as this plan has it. */
struct value_copy {
	const struct andiron_value *of, *value;
};

struct lang {
	struct arena *arena;
	struct diags *diags;
	struct registry *registry;
	struct names names;               /* what a reference may name */
	struct names lost;                /* blocks that stand in the files but were refused */
	struct names customs;             /* instances of custom components … */
	VEC(struct custom *) custom;      /* … by their position */
	const struct scope *scope;        /* of what is evaluated */
	unsigned int depth;               /* of values that are evaluated within each other */
	const struct supplied *supplied;  /* what components have sent; NULL: nothing */
	VEC(struct value_copy) copies;    /* of it */
	VEC(struct value_use) value_uses; /* in the order of evaluation */
	VEC(uint32_t) told;               /* by node: in which window its value was told last */
	uint32_t n_bindings_named;        /* arguments and variables, each time */
	uint32_t window, n_windows;       /* of value_uses: of what is evaluated, and how many */
	uint32_t early, n_early; /* in which early evaluation (scope.h), or 0, of how many */
	const char *waits_for; /* whose value was named last though nobody has sent it, or NULL */
	struct str storage;    /* the agent's directory, absolute; or nothing */
	bool no_memory;
};

/* More than any honest configuration becomes. */
#define LANG_MAX_BYTES ((size_t)512 << 20)

/* Zeroed, or NULL and no_memory. */
#define lang_array(l, type, count) ((type *)lang_calloc((l), (count), sizeof(type)))
void *lang_calloc(struct lang *l, size_t count, size_t size);
/* A NUL-terminated copy. */
struct str lang_str(struct lang *l, struct str s);

#define lang_error(l, place, hint, ...)                                                            \
	diag_add((l)->diags, DIAG_ERROR, (place), (hint), __VA_ARGS__)
#define lang_warning(l, place, hint, ...)                                                          \
	diag_add((l)->diags, DIAG_WARNING, (place), (hint), __VA_ARGS__)

/* SPDX-License-Identifier: Apache-2.0 */
/* The binder: a block's body against an option table becomes a component's arguments, exactly as
 * andiron/value.h says; and what the arguments refer to becomes a list of uses, from which the
 * draft makes edges. */
#pragma once

#include "host/lang/lang.h"
#include "host/lang/syntax/tree.h"

#include <andiron/option.h>

/* A part of a TARGETS option (a node's export, or a literal LIST of MAPs), or an element of a
 * RECEIVERS option. */
struct use {
	uint32_t type; /* ANDIRON_TYPE_TARGETS or _RECEIVERS */
	uint32_t node;
	uint32_t order;
	const char *port;
	const struct andiron_export *export;
	const struct andiron_value *literal; /* NULL: the node's export */
	struct place place;
};

struct binder {
	struct lang *l;
	const char *id; /* of the component, for what it stores; NULL: it stores nothing */
	VEC(struct use) uses;
};

/* What any component can be told, unless it has an option of that name itself. */
struct bind_common {
	bool isolate;       /* run it in a process of its own */
	struct place place; /* where that stands; no source: nowhere */
};

/* A place to report at: who is bound ("endpoint in pyroscope.write"), where. */
struct bind_owner {
	const char *name;
	struct place place;
	bool wired;                 /* the host itself may connect it: receivers are not required */
	struct bind_common *common; /* of a component: filled in; NULL for a block */
};

void binder_free(struct binder *b);

/* False if an error was reported (or no memory); goes on to report them all. `options` is NULL
 * where there are none. */
bool bind_body(struct binder *b, const struct andiron_options *options, const struct stmt *body,
	       const struct bind_owner *owner, struct andiron_value *ret);

/* Within the binder: a value as the option's type, with an error at the expression's place if it is
 * none. TARGETS and RECEIVERS add uses. */
bool bind_convert(struct binder *b, const struct andiron_option *option, const struct expr *e,
		  struct andiron_value *value);

static inline const struct andiron_option *bind_option(const struct andiron_options *options,
						       uint32_t i)
{
	return (const struct andiron_option *)(const void *)((const char *)options->items +
							     (size_t)i * options->stride);
}

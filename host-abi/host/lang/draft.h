/* SPDX-License-Identifier: Apache-2.0 */
/* A draft is a plan in the making. Nodes are appended and never move until the end, so that
 * positions stay those of the names that references found.
 *
 *     plan.c      sources → blocks → nodes with arguments → edges
 *     module.c    custom components → blocks
 *     foreach.c   rounds of foreach → blocks
 *     import.c    modules in other files
 *     fetched.c   modules that come from servers
 *     local-file.c files whose content is a value
 *     settings.c  blocks that configure the agent itself
 *     implicit.c  symbolizers and services that nobody wrote down
 *     sort.c      the order, what runs in circles, and what waits
 *     validate.c  what the components themselves have to say */
#pragma once

#include "host/lang/bind.h"
#include "host/lang/values/scope.h"
#include "host/plan.h"

/* Bounds memory, and the work of reporting circles, which is quadratic in the nodes. */
#define DRAFT_MAX_NODES 16384

struct draft_node {
	struct plan_node plan; /* args NULL: not bound, for an error */
	const struct scope *scope;
	const struct stmt *block;
	bool borrowed;         /* its arguments are another node's */
	const char *waits_for; /* the component whose value it needs first, or NULL */
};

/* An edge that orders two nodes and carries nothing: who needs a service comes before it. It does
 * not get into the plan. */
#define DRAFT_NEEDS 128u
/* The same for who supplies a value before who names it. */
#define DRAFT_VALUES 129u

struct draft_edge {
	struct plan_edge plan; /* kind 0: taken out again */
	struct place place;    /* where the file says so */
};

/* A foreach, and where it stands. */
struct draft_loop {
	const struct scope *scope;
	const struct stmt *block;
};

/* A list that a component has supplied, for a foreach to go over. */
struct draft_list {
	const char *id;
	const struct draft_item *around; /* where the foreach stands, or NULL */
	size_t n, n_bad;
};

/* An item of it; what stands in its scope is made of it. */
struct draft_item {
	bool bad; /* the subject of findings (diag.h) */
	const char *prefix;
	struct draft_list *list;
};

/* The content of an import.string, by its component. */
struct draft_text {
	const char *id;
	struct andiron_value content;
};

/* What a first draft had errors of, for a second one without it (foreach-items.h), and which
 * modules it knew at its end (fetched.h). */
struct draft_left_out {
	struct arena arena;
	VEC(struct draft_text) texts;
	unsigned int n_again; /* how often for texts */
	struct names items; /* by prefix */
	VEC(struct plan_list) lists;
	VEC(struct plan_file) files; /* with others in them it may go */
};

/* Blocks that configure the agent (settings.h). */
enum draft_setting {
	DRAFT_LOGGING,
	DRAFT_HTTP,
	DRAFT_TRACING,
	DRAFT_REMOTECFG,
	DRAFT_LIVEDEBUGGING,
	DRAFT_STORAGE,
	DRAFT_SETTINGS,
};

struct draft {
	struct lang l;
	const struct source *sources;
	size_t n_sources;
	VEC(struct draft_node) nodes;
	VEC(struct draft_edge) edges;
	VEC(struct plan_literal) literals;
	VEC(const struct source *) imported;
	VEC(struct plan_file) files;
	VEC(struct draft_loop) loops;
	/* Components of templates, of which there may be none now. */
	VEC(const struct registered_component *) templates;
	VEC(struct draft_list *) lists;
	VEC(struct draft_item *) items;
	struct draft_left_out *left_out;
	VEC(const struct stmt *) refused; /* of which it was said that nothing has their name */
	const struct stmt *settings[DRAFT_SETTINGS]; /* as they stand, or NULL */
	int64_t poll_ns;                             /* as the plan's */
	uint32_t n_rounds;                           /* of all loops */
	uint32_t n_fetched;                          /* modules that are, or are to be */
	const char *searched;                        /* see draft_searched */
	bool split_told;                             /* how a file of several signals is split */
	bool awaits_modules;                         /* some are not there yet */
};

/* A block that stands in the scope: a component, a setting, or a matter of modules. */
void draft_block(struct draft *d, const struct scope *scope, const struct stmt *s);

/* A block of a component, as a node: its position, or INDEX_NONE after an error. */
uint32_t draft_component(struct draft *d, const struct scope *scope, const struct stmt *s);
/* Says that no component has the block's name; once, in however many rounds it stands. */
void draft_refuse(struct draft *d, const struct scope *scope, const struct stmt *s);
/* The component of that name or NULL; all plugins are loaded where none has it. */
const struct registered_component *draft_find(struct draft *d, struct str name);

/* Appends a node under its id, which is new; its position, or INDEX_NONE without memory. */
uint32_t draft_add(struct draft *d, struct draft_node node);
/* The same of one that stands in a file, with an id that may be another's, or NULL without memory;
 * INDEX_NONE after an error, too. */
uint32_t draft_add_new(struct draft *d, struct draft_node node);
void draft_connect(struct draft *d, struct draft_edge edge);

/* Where plugins were looked for and which were refused, for who misses one. */
const char *draft_searched(struct draft *d);

static inline uint32_t draft_flags(const struct draft *d, uint32_t node)
{
	return d->nodes.p[node].plan.registered->component->flags;
}

/* Whatever is found from here on is about the item of the scope, if that is one and has one. */
static inline void draft_about(struct draft *d, const struct scope *scope)
{
	d->l.diags->subject = scope && scope->item ? &scope->item->bad : NULL;
}

/* The edges by the node at one end: those of node n are list[begin[n]] up to list[begin[n + 1]], in
 * the order in which they were added; in the arena. */
struct draft_ends {
	uint32_t *begin, *list;
};
struct draft_ends draft_edges_by(struct draft *d, bool to);

/* The nodes' positions, producers before consumers, else as in the files; in the arena. NULL if
 * there is a circle, which is reported, or no memory. */
uint32_t *draft_sort(struct draft *d);

/* Takes out what waits for a value, and what names it (sort.c). */
void draft_set_aside(struct draft *d);

/* Puts symbolizers and services in. `order` is of draft_sort. */
void draft_complete(struct draft *d, const uint32_t *order);

/* Calls each component's validate. */
void draft_validate(struct draft *d);

/* SPDX-License-Identifier: Apache-2.0 */
/* A plan is a configuration that was understood: the nodes to make with their arguments, and the
 * edges between them. It is what the runtime executes, and what `validate` checks for errors.
 * Building it has no side effects beyond each component's own `validate`.
 *
 * Implicit nodes: a symbolizer between whoever emits raw frames and whoever wants names (the file's
 * single profile.symbolize block if there is one, else one with defaults), and every service that
 * some node needs. */
#pragma once

#include "host/diag.h"
#include "host/registry.h"

#include <andiron/component.h>

struct plan_node {
	const char *id; /* "pyroscope.ebpf.instance"; without label the name alone */
	const struct registered_component *registered;
	const struct andiron_value *args;
	struct place place;
	bool implicit;
	bool isolate; /* by a process of its own (isolate/isolated.h) */
};

#define PLAN_TARGETS 1u
#define PLAN_BATCHES 2u

/* Targets: `from`'s export to `to`'s option `port`. Batches: from's forward_to to `to`'s receiver.
 * from and to index nodes. `order` numbers the producers of one port, from 0. */
struct plan_edge {
	uint32_t from;
	uint32_t to;
	uint32_t kind;
	uint32_t order;
	const char *export_name;
	const char *port;
};

/* Targets written out in the file: a LIST of MAPs for `to`'s option `port`. */
struct plan_literal {
	uint32_t to;
	uint32_t order;
	const char *port;
	const struct andiron_value *targets;
};

/* A file whose content is in the plan, or a folder of modules. */
struct plan_file {
	const char *path;
	uint64_t hash; /* file_content_hash, when it was read or before */
	const bool *bad; /* of a draft: whether the item is left out that names it; or NULL */
};

/* A component that is not made yet: it names a value of `waits_for` that was not supplied, or
 * another component that does. */
struct plan_waiting {
	const char *id, *waits_for;
	/* NULL: a custom component whose module was not fetched yet; it may become any. */
	const struct registered_component *registered;
};

/* A foreach over targets, of whose items the plan is made. */
struct plan_list {
	const char *id;
	const char *left_out; /* how many its template cannot take, and why; NULL: it takes all */
};

struct supplied;

struct plan {
	struct arena arena;
	VEC(struct plan_node) nodes; /* producers before consumers */
	VEC(struct plan_edge) edges;
	VEC(struct plan_literal) literals;
	VEC(struct plan_file) files;
	int64_t poll_ns; /* they are to be looked at so often, as one asks for it; or 0 */
	VEC(struct plan_waiting) waiting;
	/* Set where a module is not fetched yet: it may bring each component of the registry, all
	 * of which are loaded. */
	const struct registry *may_bring;
	/* What a foreach over targets makes of each item, of which there may be none. */
	VEC(const struct registered_component *) templates;
	VEC(struct plan_list) lists;
	/* What the block `logging` says, as words of host/report/log.h; NULL: nothing. */
	const char *log_level, *log_format;
};

/* Reads the sources as one configuration. Every error goes to `diags`;
 * returns 0 if there was none (then *ret is the plan), -EINVAL if there was,
 * -ENOMEM. A source over 16 MiB, or with NUL bytes or bad UTF-8, is one
 * error. Sources and registry outlive the plan. */
int plan_build(const struct source *sources, size_t n_sources, struct registry *registry,
	       struct diags *diags, struct plan **ret);
/* The same with values that components have supplied (lang/supplied.h), which are copied.
 * What names one that is not there is listed as waiting. Items of which alone there are errors are
 * left out, as long as their list has others. `diags` has nothing yet. */
int plan_build_with(const struct source *sources, size_t n_sources, struct registry *registry,
		    const struct supplied *supplied, struct diags *diags, struct plan **ret);
void plan_free(struct plan *plan);

/* What would wait though it does not in `from`, where something of that stops in `to`: the first of
 * it, or NULL. Such a change loses what runs for a value that may never come. O(nodes²). */
const struct plan_waiting *plan_loses(const struct plan *from, const struct plan *to);

/* Adds the components of `next` that supply values, without edges, and the files of its values; a
 * component of both stays as it is, unless something in `next` waits for it. Takes `next` over,
 * also on failure: 0 or -ENOMEM. */
int plan_add_suppliers(struct plan *plan, struct plan *next);

/* SPDX-License-Identifier: Apache-2.0 */
/* The edges of a plan as they will be: for each node what it sends to. They are built aside, since
 * that can fail, and then put in place, which cannot. On the loop thread. */
#pragma once

#include "base/index.h"
#include "host/state.h"

struct node_edges {
	struct instance *instance;
	struct instances receivers, downstream;
	/* The same, for the one that goes on until the instance works; NULL: there is none. */
	struct instance *overlapped;
	struct instances its_receivers, its_downstream;
	struct target_sources sources;
	struct target_edges *exports; /* one for each of the instance's */
	uint64_t *paths;              /* to each writer's row */
};

struct wiring {
	struct host *host;
	struct node_edges *edges; /* one for each node of the plan */
	size_t n_nodes, n_rows;
	struct inline_targets **inline_targets;
	struct target_edges *inline_edges; /* one for each */
	size_t n_inline;
	struct index inline_index; /* by consumer: positions of those that the host has */
};

/* `nodes[n]` is the instance of the plan's node n. On failure nothing has changed. wiring_fini in
 * any case. */
int wiring_build(struct wiring *w, struct host *host, const struct plan *plan,
		 struct instance *const *nodes, struct error *err);
void wiring_apply(struct wiring *w);
void wiring_fini(struct wiring *w);

/* Gives a consumer that went live all targets that wait for it. */
void wiring_attach(struct instance *to);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The graph of instances: who may take its next step in life, and how one plan
 * becomes another. All on the loop thread.
 *
 * An instance starts when everyone downstream of it and every service it needs
 * has started or failed to. One that retires drains when everyone upstream
 * that retires has drained and its own queue is empty, stops when they have
 * stopped, and is destroyed when its work has returned; a service outlives
 * those that use it. Stopping the host is retiring everybody.
 */
#ifndef HOST_GRAPH_GRAPH_H
#define HOST_GRAPH_GRAPH_H

#include "host/state.h"

/* Takes every step that can be taken now. Called after anything that may
 * have made one possible; host_poke asks for it. */
void graph_advance(struct host *host);

/* Begins to retire an instance, or moves its deadline forward. */
void graph_retire(struct instance *i, int64_t deadline_ns);

/* The jobs of an instance (lifecycle.c). */
void life_init(struct instance *i);
void life_start(struct instance *i);
void life_drain(struct instance *i);
void life_stop(struct instance *i);
/* False while its work is still out. */
bool life_destroy(struct instance *i);

/*
 * Makes the instance of a node and calls `create`: 0, or a negative errno with
 * the cause. It is in host->instances, without edges.
 */
int life_create(struct host *host, const struct plan_node *node, struct instance **ret,
		struct error *err);

/* Replaces what runs by a plan; see host_load and host_reload. */
int change_plan(struct host *host, struct plan *plan, struct error *err);

/*
 * The edges of a plan as they will be: for each node what it sends to. Built
 * aside, since that can fail, then put in place, which cannot.
 */
struct wire {
	struct instance *instance;
	struct instances receivers, downstream;
	struct target_edges *exports; /* one for each of the instance's */
	uint64_t *paths;              /* to each writer's row */
};

struct wiring {
	struct host *host;
	struct wire *wires; /* one for each node of the plan */
	size_t n_wires, n_rows;
	struct literal **literals;
	struct target_edges *literal_edges; /* one for each */
	size_t n_literals;
};

/* `nodes[n]` is the instance of the plan's node n. On failure nothing has
 * changed. wiring_fini in any case. */
int wiring_build(struct wiring *w, struct host *host, const struct plan *plan,
		 struct instance *const *nodes, struct error *err);
void wiring_apply(struct wiring *w);
void wiring_fini(struct wiring *w);

/* Literals: the lists written out in a plan (inline-targets.c). */
int literals_build(struct wiring *w, const struct plan *plan, struct instance *const *nodes);
void literals_apply(struct wiring *w);
void literal_free(struct literal *l);
/* Gives a consumer that went live everything that waits for it. */
void targets_attach(struct host *host, struct instance *to);

#endif

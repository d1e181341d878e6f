/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of targets that others refer to: a component's export, or one written
 * out in the file. It keeps the rows as they are now, so that a consumer that
 * begins late gets a snapshot and from then on the differences.
 *
 * An edge waits until its consumer is live; then it is live itself. An edge
 * for which memory was short is stale, and gets a snapshot with the next
 * update instead of it.
 */
#ifndef HOST_EXPORTS_H
#define HOST_EXPORTS_H

#include "abi/target-list.h"
#include "base/vec.h"

#include <pthread.h>

struct instance;

#define EDGE_WAITING 0
#define EDGE_LIVE 1
#define EDGE_STALE 2

struct target_edge {
	struct instance *to;
	const char *port; /* lives as long as the host */
	int state;
};

struct target_edges {
	struct target_edge *p;
	size_t n, capacity;
};

struct generation {
	uint64_t producer, generation;
};

struct export
{
	const char *name; /* borrowed */
	pthread_mutex_t lock;
	struct target_table *table;
	VEC(struct generation) generations;
	struct target_edges edges;
	int64_t changed_ns; /* CLOCK_MONOTONIC, of the last update; 0: none yet */
};

/* 0 or -ENOMEM, and then there is nothing to undo. */
int export_init(struct export *e, const char *name);
void export_fini(struct export *e);

/* Applies an update and passes it on: 0, -EINVAL for one that breaks target.h
 * or leaves a gap, -ENOMEM. [any], O(rows) */
int export_send(struct export *e, const struct andiron_targets *update);

/* Makes the waiting edges to a consumer live, which is by now. [loop] */
void export_attach(struct export *e, struct instance *to);

/*
 * Puts other edges in place of those there are; takes them over and leaves the
 * old ones in *edges. An edge that was there keeps its state. Consumers that
 * are live and lost theirs are told that the rows are gone. [loop]
 */
void export_rewire(struct export *e, struct target_edges *edges);

/* Hands an update to a consumer, on its strand; false when memory is short.
 * [any] */
bool targets_deliver(struct instance *to, const char *port, const struct andiron_targets *update);

/* All rows of one producer in a table as a snapshot of this generation, with
 * one reference; NULL when memory is short. A NULL table: no rows. */
const struct andiron_targets *targets_snapshot(struct target_table *table, uint64_t producer,
					       uint64_t generation);

#endif

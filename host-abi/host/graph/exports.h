/* SPDX-License-Identifier: Apache-2.0 */
/* A list of targets that others refer to: a component's export, or one written out in the file. A
 * consumer that begins late gets all rows there are, and from then on the differences.
 *
 * Where its rows come from: of a component that can say them again (`resend`) nothing is kept, and
 * an empty snapshot is followed by what it says. For all others the export keeps a table of the
 * rows as they are now. Of the former a table is kept while somebody looks.
 *
 * An edge waits until its consumer is live; then it is live itself. An edge for which memory was
 * short is stale, and gets a snapshot with the next update instead of it. */
#pragma once

#include "abi/target-list.h"
#include "base/clock.h"
#include "base/vec.h"
#include "host/flow/strand.h"

#include <pthread.h>

struct instance;

#define EDGE_WAITING 0
#define EDGE_LIVE    1
#define EDGE_STALE   2

struct target_edge {
	struct instance *to;
	const char *port; /* lives as long as the host */
	uint64_t place;   /* of this list among those of the port: the consumer's producer */
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
	const char *name;       /* borrowed */
	struct instance *owner; /* resends; NULL: `table` has the rows */
	pthread_mutex_t lock;
	struct target_table *table; /* NULL: the rows are not kept */
	struct job again;           /* has the owner resend */
	bool asked;                 /* that job is under way */
	bool whole;                 /* the table has all rows */
	VEC(struct generation) generations;
	struct target_edges edges;
	int64_t changed_ns; /* CLOCK_MONOTONIC, of the last update; 0: none yet */
	int64_t looked_ns;  /* likewise, when somebody looked; 0: the table does not go */
};

/* With a table if `keep`, and always without an owner. 0 or -ENOMEM, and then there is nothing to
 * undo. */
int export_init(struct export *e, const char *name, struct instance *owner, bool keep);
void export_fini(struct export *e);

/* Has the rows kept, if they are not: `table` is `whole` once the owner has said all again. An
 * update that comes a minute after the last look lets them go. [loop] */
#define EXPORT_LOOK_NS (60 * NS_PER_SEC)
void export_look(struct export *e);

/* Applies an update and passes it on: 0, -EINVAL for one that breaks target.h or leaves a gap,
 * -ENOMEM. [any], O(rows) */
int export_send(struct export *e, const struct andiron_targets *update);

/* Makes the waiting edges to a consumer live, which is by now. [loop] */
void export_attach(struct export *e, struct instance *to);

/* Has all rows resent to this consumer, if there is such an edge. [loop] */
void export_again(struct export *e, struct instance *to, const char *port);

/* Puts other edges in place of those there are; takes them over and leaves the old ones in *edges.
 * An edge that was there keeps its state. Consumers that are live and lost theirs are told that the
 * rows are gone. [loop] */
void export_rewire(struct export *e, struct target_edges *edges);

/* An edge to the place `order` among the lists of a port; 0 or -ENOMEM. [loop] */
int target_edge_init(struct target_edge *edge, struct instance *to, const char *port,
		     uint32_t order);

/* Hands an update to a consumer, on its strand, as one of the producer that the edge is to it;
 * `nth` tells producers of one export apart. False when memory is short. [any] */
bool targets_deliver(const struct target_edge *edge, size_t nth,
		     const struct andiron_targets *update);

/* All rows of one producer in a table as a snapshot of this generation, with one reference; NULL
 * when memory is short. A NULL table: no rows. */
const struct andiron_targets *targets_snapshot(struct target_table *table, uint64_t producer,
					       uint64_t generation);

/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger: where every sample went. For each writer W
 *
 *     taken + carried = delivered + spooled + uncertain + in flight + dropped
 *
 * A component counts in its own `ledger_node`; what it counts is charged at that moment to every
 * writer its samples would have reached, once for each path of the graph (two paths deliver a
 * sample twice). Levels (in flight, spooled, uncertain) stay with the node and are summed up when
 * the ledger is read. Reasons are words under "COMPONENT:REASON".
 *
 * When edges change, what is in flight upstream will reach other writers than it was taken for, so
 * their `taken` is moved with it (ledger_rewire).
 *
 * One mutex, because a batch is counted a handful of times in its life and a consistent view is
 * worth more than what atomics would save. Rows of writers that are gone stay: their samples went
 * somewhere too. */
#pragma once

#include "base/buf.h"
#include "host/host.h"

#include <pthread.h>

/* Distinct reasons that a row keeps; the rest is counted as "other". */
#define LEDGER_REASONS 256

/* As VEC(struct ledger_reason). The first entry is for what finds no room. */
struct ledger_reasons {
	struct ledger_reason *p;
	size_t n, capacity;
};

struct ledger_node {
	const char *component;
	uint64_t in_flight, spooled, uncertain; /* levels, set by the component */
	uint64_t queued, processing;            /* levels, kept by the host */
	uint64_t unread;                        /* level, outside the equation */
	VEC(uint64_t) paths;                    /* to each writer's row */
};

struct ledger_row {
	const char *component;
	uint64_t taken, carried, delivered;
	uint64_t left_in_flight, left_spooled, left_uncertain; /* levels of nodes that are gone */
	struct ledger_reasons dropped;
};

struct ledger {
	pthread_mutex_t lock;
	struct arena names;
	uint64_t taken;
	struct ledger_reasons skipped;
	VEC(struct ledger_row) rows;
	VEC(struct ledger_node *) nodes;
	/* The view last given. */
	struct ledger_view view;
	VEC(struct ledger_writer) writers;
	struct ledger_reasons view_reasons;
};

/* 0 or -ENOMEM, and then there is nothing to undo. */
int ledger_init(struct ledger *l);
void ledger_fini(struct ledger *l);

/* Adds a node; the name is copied. 0 or -ENOMEM. */
int ledger_enter(struct ledger *l, struct ledger_node *node, const char *component);
/* Takes it off; its levels stay counted. */
void ledger_leave(struct ledger *l, struct ledger_node *node);

/* The row of a writer, made if need be: its index, or -ENOMEM. */
int ledger_writer_row(struct ledger *l, const char *component);

/* Room in the node's paths for every row there is. 0 or -ENOMEM. */
int ledger_reserve(struct ledger *l, struct ledger_node *node);

/* Changes paths: calls `set` with the lock held, which sets every node's paths, and moves `taken`
 * along with what is in flight. The reserve above was made. */
void ledger_rewire(struct ledger *l, void (*set)(void *context), void *context);

/* Counts. [any], O(writers + reasons). Reason: empty where none belongs. */
void ledger_count(struct ledger *l, struct ledger_node *node, uint32_t entry, struct str reason,
		  uint64_t samples);
void ledger_level(struct ledger *l, struct ledger_node *node, uint32_t entry, uint64_t samples);

/* The host's own: into a queue, from there to a component, and done; or out of the queue without
 * having been seen. [any] */
void ledger_queued(struct ledger *l, struct ledger_node *node, uint64_t samples);
void ledger_processing(struct ledger *l, struct ledger_node *node, uint64_t samples);
void ledger_processed(struct ledger *l, struct ledger_node *node, uint64_t samples);
void ledger_unqueued(struct ledger *l, struct ledger_node *node, struct str reason,
		     uint64_t samples);

/* Everything as it is now; borrowed until the next call. NULL when memory is short. One thread. */
const struct ledger_view *ledger_view(struct ledger *l);

/* Whether the equation holds for every writer; `ret_writer` (may be NULL) names the first for which
 * it does not, and ret_gap what is missing. */
bool ledger_balanced(struct ledger *l, const char **ret_writer, int64_t *ret_gap);

/* Samples taken for the writer of that node that have not reached it, with what its samplers have
 * not read; and what was dropped of its row. Both 0 for a node that is no writer. [any] */
uint64_t ledger_upstream(struct ledger *l, const struct ledger_node *writer, uint64_t *ret_dropped);

/* The view as JSON, and as one line. 0 or -ENOMEM. */
int ledger_json(const struct ledger_view *view, struct buf *out);
int ledger_line(const struct ledger_view *view, struct buf *out);

/* SPDX-License-Identifier: Apache-2.0 */
/* What one host holds, for the files of this folder. Everything belongs to the loop thread unless a
 * lock is named. */
#pragma once

#include "base/intern.h"
#include "host/host.h"
#include "host/graph/instance.h"
#include "host/report/log.h"
#include "host/report/metrics.h"

#include "host/objects/objects.h"

struct status;

/* Targets written out in the file, as an export without a component. */
struct inline_targets {
	struct export export;
	struct target_list *list;
	const char *port; /* with `order` and the consumer's name: which one it is */
	char *to;
	uint32_t order;
	size_t n_rows;
	bool kept; /* by the plan that is being loaded */
};

/* A callback of the command line's: host_timer, host_watch. */
struct host_call {
	struct host *host;
	struct loop_timer timer;
	struct loop_watch watch;
	bool is_watch;
	int64_t every_ns;
	void (*fn)(void *context);
	void *context;
};

struct host {
	struct host_options options;
	struct loop loop;
	struct workers workers;
	struct log log;
	struct ledger ledger;
	/* Written by the loop thread only, which may read without it: the list of instances, and
	 * everybody's `receivers`. */
	pthread_rwlock_t wiring;
	struct instances instances;
	VEC(struct inline_targets *) inline_targets;
	VEC(struct host_call *) calls;
	struct plan *plan;
	struct intern names; /* of ports and exports that edges refer to */
	struct metrics metrics;
	struct status *status;
	struct objects *objects;
	struct loop_task advance;
	atomic_bool poked;
	struct loop_timer deadline;
	atomic_int n_stops; /* host_stop was called so often */
	int n_stops_seen;
	bool running, reloading, live;
	bool reload_requested;     /* services/reload-request.h */
	struct supplied *supplied; /* of components; services/values.h */
	struct loop_timer refresh;
	bool gathering; /* values: `refresh` is set for those that have come */
	struct {
		bool refused; /* the one that was tried last */
		bool waits;   /* one for a value */
		uint64_t n_refused;
		int64_t taken_ns; /* CLOCK_REALTIME; 0: nobody notes it */
	} configuration;
	bool stuck;        /* an instance was abandoned: threads still use this memory */
	struct buf failed; /* names of those that failed to start */
	char failed_cause[HEALTH_BYTES];
};

/* Has the graph looked at soon (scheduler_advance). [any] */
void host_poke(struct host *host);

/* One round of the loop, and what follows from host_stop. */
void host_step(struct host *host);

/* Text of a name that lives as long as the host; NULL when memory is short. */
const char *host_name(struct host *host, const char *name);

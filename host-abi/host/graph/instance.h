/* SPDX-License-Identifier: Apache-2.0 */
/* An instance: one running component, and all that the host keeps for it. Its id is what the
 * component hands back to the host's services; the ids of all hosts of the process are in one
 * table, which is the only global state.
 *
 * Threads: what has no remark belongs to the loop thread. `lock` covers what the services touch
 * from anywhere; it is never held while a component is called. Order of locks: wiring (host) →
 * export → instance → strand → loop, workers, ledger, log. */
#pragma once

#include "base/error.h"
#include "host/graph/exports.h"
#include "host/report/ledger.h"
#include "host/flow/queue.h"
#include "host/flow/handle-table.h"
#include "host/flow/strand.h"

#include <andiron/component.h>

struct host;
struct isolated;
struct plan_node;
struct plugin_generation;

/* The ABI's opaque error is ours (host.h of the ABI, error_add). */
struct andiron_error {
	struct error error;
};

/* In the order in which an instance goes through them. A later stage is a greater number; FAILED is
 * LIVE's twin that never worked. */
enum stage {
	STAGE_NEW,
	STAGE_STARTING,
	STAGE_LIVE,
	STAGE_FAILED,
	STAGE_DRAINING,
	STAGE_DRAINED,
	STAGE_STOPPING,
	STAGE_STOPPED,
	STAGE_DESTROYING,
	STAGE_GONE,
	STAGE_ABANDONED, /* it does not come back from a call; its memory is left alone */
};

#define HEALTH_BYTES 512

struct health {
	uint32_t state;
	int64_t since_ns; /* CLOCK_REALTIME */
	char text[HEALTH_BYTES];
};

/* A table that a SERVICE offers, asked for once. */
struct offer {
	const char *id;
	const void *table;
};

struct instances {
	struct instance **p;
	size_t n, capacity;
};

struct target_source {
	struct export *export;
	struct instance *from; /* NULL: it is written out in the file */
};

struct target_sources {
	struct target_source *p;
	size_t n, capacity;
};

struct instance {
	uint64_t id;
	struct host *host;
	const struct andiron_component *component; /* what is called */
	struct isolated *isolated; /* which then stands in for what a process runs; or NULL */
	const struct plugin_generation *generation; /* its file; NULL: the program's own */
	int file; /* that file, where a process of its own needs it; else -1 */
	char *name;
	const struct plan_node *node; /* of the plan that runs; none of one that retires */
	uint32_t next_node;           /* its place in the plan that is being made, or INDEX_NONE */
	void *self;
	atomic_uint refs;
	struct strand strand;
	struct ledger_node ledger_node;

	enum stage stage;
	bool created; /* the component made itself: it must be destroyed */
	bool wired;   /* its edges are there: it may start */
	bool retiring;
	/* What it takes the place of, by a reference, until that is gone; and the other way round,
	 * while that goes on until this one works (scheduler.c). */
	struct instance *predecessor, *successor;
	enum stage upstream;        /* the least of those upstream that retire (scheduler.c) */
	int64_t deadline_ns;        /* of the drain, once it retires */
	struct andiron_error error; /* of the call under way */
	int32_t result;
	struct job start, drain, stop, destroy;
	atomic_bool drained;    /* said so */
	atomic_bool drain_over; /* drain has returned */
	atomic_bool full;       /* said so: nothing is to be offered to it */

	/* Batches go to `receivers`; read under the host's wiring lock. */
	struct instances receivers;
	/* Everyone behind it, by batches or targets: starts before it and drains after it. */
	struct instances downstream;
	struct target_sources sources; /* whose targets it gets */
	struct export *exports;
	size_t n_exports;
	VEC(struct offer) offers;

	pthread_mutex_t lock;
	struct health health;
	struct queue queue;
	struct job batch;
	atomic_ullong received; /* samples that were handed to it */
	atomic_ullong sent;     /* samples of its batches that went on, once for all receivers */
	struct slots timers, watches, children;
	struct instances uses; /* services whose tables it has */
};

/* Makes and registers an instance with one reference, without calling the component; `isolate`: of
 * a stand-in for it. 0 or -ENOMEM. [loop] */
int instance_new(struct host *host, const char *name, const struct andiron_component *component,
		 bool isolate, struct instance **ret);
/* The component as its plugin has it. */
const struct andiron_component *instance_original(const struct instance *i);
struct instance *instance_ref(struct instance *i);
/* The last one frees it; the component was destroyed or never made. [any] */
void instance_unref(struct instance *i);

/* By id, with a reference; NULL for an id that is none (any more). [any] */
struct instance *instance_get(uint64_t id);
/* After this its id finds nothing. */
void instance_unregister(struct instance *i);

/* The export of that name, or NULL. */
struct export *instance_export(struct instance *i, const char *name);

/* Notes that `i` uses a service; 0 or -ENOMEM. [any] */
int instance_uses(struct instance *i, struct instance *service);

bool instances_have(const struct instances *list, const struct instance *i);
/* Adds if it is not there; 0 or -ENOMEM. */
int instances_add(struct instances *list, struct instance *i);

/* States health and logs a change. [any] */
void instance_health(struct instance *i, uint32_t state, struct str text);
void instance_healthf(struct instance *i, uint32_t state, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The same without a line in the log, of a state that there is and less text than HEALTH_BYTES:
 * whether it has changed. [any] */
bool instance_note_health(struct instance *i, uint32_t state, struct str text,
			  uint32_t *ret_before);
const char *health_name(uint32_t state);

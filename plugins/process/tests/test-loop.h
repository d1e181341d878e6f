/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest host that runs this folder's engines in a test: one loop with posts, work (run on
 * the spot), timers and watches; health and logs are kept to be looked at, and targets go to a
 * table. */
#pragma once

#include "abi/target-list.h"

#include <andiron/host.h>
#include <andiron/process-events.h>

#include <stdbool.h>

#define LOOP_SLOTS 64

struct loop_call {
	andiron_call_fn fn, done;
	void *arg;
	int64_t at_ns; /* 0: at once */
};

struct loop_watch {
	andiron_watch_fn fn;
	void *arg;
	int fd;
};

struct loop {
	struct loop_call calls[LOOP_SLOTS]; /* in order; fn NULL is free */
	struct loop_watch watches[LOOP_SLOTS];
	uint32_t health;
	char health_text[1024];
	uint64_t n_warnings;
	struct target_table *targets;
	uint64_t n_updates, n_rows_sent;
	struct andiron_extension events; /* what `extension` gives; table NULL: nothing */
};

/* One loop at a time: the host's table has no argument to tell them apart. */
const struct andiron_host *loop_init(struct loop *l);
void loop_fini(struct loop *l);

/* Runs until `done` says so; false when `timeout_ms` pass before that. */
bool loop_run(bool (*done)(void *context), void *context, int timeout_ms);

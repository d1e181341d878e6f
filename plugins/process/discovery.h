/* SPDX-License-Identifier: Apache-2.0 */
/* The engine of discovery.process: one target per process that has a program, kept by process
 * events. What happened is gathered for DISCOVERY_GATHER_NS, so what lives shorter than that costs
 * nothing; then a worker reads /proc for those concerned, in slices, and the loop only puts rows in
 * place.
 *
 * Without events, and every refresh interval with them, it lists /proc and reads all processes
 * again: a move into another cgroup makes no event. */
#pragma once

#include "abi/log.h"
#include "process/labels.h"

#include <andiron/host.h>

#define DISCOVERY_GATHER_NS INT64_C(50000000)

struct discovery_config {
	struct label_choice choice;
	int64_t refresh_ns;
};

/* Start, stop, free and join are verbs of a component (andiron/component.h), with the discovery as
 * `self`. */
struct discovery;

/* [loop]; NULL when memory is short or /proc cannot be opened. */
struct discovery *discovery_new(const struct andiron_host *host, uint64_t instance,
				const struct discovery_config *config);
/* After all work has returned. */
void discovery_free(void *self);

/* [worker] [serial]. Without events it begins all the same, and says so. */
int32_t discovery_start(void *self, struct andiron_error *err);
void discovery_stop(void *self);

/* New arguments: everything is read again. */
void discovery_update(struct discovery *d, const struct discovery_config *config);

/* An update of the targets to join. [loop] [serial]. */
void discovery_join(void *self, const char *port, const struct andiron_targets *update);

struct discovery_totals {
	uint64_t processes; /* known now, kernel threads included */
	uint64_t targets;   /* of processes, now */
	uint64_t reads;     /* of a process's files, so far */
};

void discovery_totals(const struct discovery *d, struct discovery_totals *ret);

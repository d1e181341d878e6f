/* SPDX-License-Identifier: Apache-2.0 */
/* A batch as requests of OTLP's profiles signal, and their way to the thread that has them. */
#pragma once

#include "base/buf.h"
#include "base/vec.h"
#include "pyroscope-push/series.h"

#include <andiron/batch.h>

#include <pthread.h>

/* One for each target and profile name, as otlp.write sends them, so each has the tables that it
 * needs alone. */
struct profiles {
	VEC(struct buf) requests;
	uint64_t lost[SERIES_N_LOSSES]; /* samples that are in none of them */
};

/* Adds those of a batch, with times of their own: 0; -ENOTSUP: none came of it, and `lost` says
 * why; -ENOMEM: not all are there. O(size). */
int profiles_add(struct profiles *p, struct times *times, const struct andiron_batch *batch);
void profiles_free(struct profiles *p);

/* A place where one thread gives and another takes, when it is its turn. Nothing is kept here: who
 * gives waits, and knows what became of it. */
struct handover {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	const struct profiles *offered;
	int result; /* of the last that was taken */
	uint64_t lost[SERIES_N_LOSSES];
	bool closed;
};

void handover_init(struct handover *h);
void handover_fini(struct handover *h);

/* What the taker has answered; -ETIMEDOUT: nobody came; -ESHUTDOWN. One thread at a time. */
int handover_give(struct handover *h, const struct profiles *p, int64_t patience_ns);

/* Calls `fn` with what is offered, if anything is. */
void handover_take(struct handover *h, int (*fn)(void *context, const struct profiles *p),
		   void *context);

/* What was lost on the way to requests, to be said on the other thread. [any] */
void handover_lose(struct handover *h, const uint64_t lost[SERIES_N_LOSSES]);
void handover_take_lost(struct handover *h, uint64_t ret[SERIES_N_LOSSES]);

/* Nothing is given any more; who waits returns. [any] */
void handover_close(struct handover *h);

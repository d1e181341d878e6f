/* SPDX-License-Identifier: Apache-2.0 */
/* A record: one finished profile of one series, in the bytes of its protocol (protocol.h). It is
 * never changed, so every try and every endpoint sends the same bytes with the same time.
 *
 * A record counts how many endpoints have yet to settle it. The writer's row in the ledger is that
 * of the worst endpoint: a sample is delivered when all have it, uncertain when one may have it,
 * dropped when one had to drop it.
 *
 * Its message is in memory, or in the spool at `place`, or in both. */
#pragma once

#include "base/buf.h"
#include "pyroscope-push/spool/spool.h"

#include <stdint.h>
#include <stdlib.h>

/* What an endpoint made of a record. */
enum outcome {
	OUTCOME_DELIVERED,
	OUTCOME_UNCERTAIN, /* sent, and the answer was lost */
	OUTCOME_DROPPED,
	OUTCOME_LEFT, /* to the next run, in the spool */
};

struct record {
	uint32_t n_unsettled;
	bool uncertain, left;
	const char *dropped; /* the first reason given, NULL: none */
	uint64_t samples;
	size_t raw_bytes; /* uncompressed, labels included, as servers count */
	size_t size;      /* of the message, wherever it is */
	int64_t time_ns;
	uint64_t owed;       /* at the writer's end: who has yet to settle it, by position */
	uint64_t unanswered; /* of these, to whom it went out in an earlier run */
	struct spool_place place;
	struct buf message; /* empty while it is only in the spool */
};

static inline bool record_is_spooled(const struct record *r)
{
	return r->place.sequence != 0;
}

/* What holding it in a queue costs in memory. What lies in the spool is read when it is sent. */
static inline size_t record_cost(const struct record *r)
{
	return sizeof(*r) + (record_is_spooled(r) ? 0 : r->size);
}

static inline void record_free(struct record *r)
{
	if (!r)
		return;
	buf_free(&r->message);
	free(r);
}

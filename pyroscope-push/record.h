/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A record: one finished profile of one series, in the bytes of its protocol
 * (protocol.h). It is never changed, so every try and
 * every endpoint sends the same bytes with the same time.
 *
 * A record counts how many endpoints have yet to settle it, delivered or
 * dropped. The writer's row in the ledger is that of the worst endpoint: a
 * sample is delivered when all have it, and dropped when one had to drop it.
 */
#ifndef PUSH_RECORD_H
#define PUSH_RECORD_H

#include "base/buf.h"

#include <stdint.h>

struct record {
	uint32_t n_unsettled;
	const char *dropped; /* the first reason given, NULL: none */
	uint64_t samples;
	size_t raw_bytes; /* uncompressed, labels included, as the server counts */
	int64_t time_ns;
	struct buf message;
};

/* What holding it costs. */
static inline size_t record_bytes(const struct record *r)
{
	return sizeof(*r) + r->message.capacity;
}

void record_free(struct record *r);

#endif

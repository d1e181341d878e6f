/* SPDX-License-Identifier: Apache-2.0 */
/* A chunk of Fluent Bit's as a batch: each of its profiles becomes one of pprof, as `otlp.receive`
 * makes them (receive-http/otlp-request.h). */
#pragma once

#include "base/error.h"
#include "base/str.h"

#include <andiron/batch.h>

/* Whoever has the chunk. */
struct chunk_head {
	uint64_t producer;
	int64_t now_ns; /* CLOCK_REALTIME */
};

/* 0 and one reference, or NULL where there are no samples; `ret_left_out` is told how many profiles
 * were at fault or found no room, and *err why the first was. Or -ENOMEM, or -EBADMSG and a text.
 * What it takes is bounded by the chunk's bytes and CPROFILES_MAX_BYTES (cprofiles.h). */
int chunk_read(struct str chunk, const struct chunk_head *head, const struct andiron_batch **ret,
	       uint64_t *ret_left_out, struct error *err);

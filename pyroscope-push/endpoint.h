/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One endpoint: a queue of records bounded in bytes, and a few requests in
 * flight. A request carries many series below the server's limits, since an
 * answer takes half a second whatever is in it.
 *
 * A request that failed keeps its place and its bytes and is tried again with
 * exponential backoff; while one waits, no new one begins (the server is in
 * trouble), and the first success lets all that wait go at once.
 */
#ifndef PUSH_ENDPOINT_H
#define PUSH_ENDPOINT_H

#include "abi/log.h"
#include "http/http.h"
#include "options.h"
#include "record.h"

#define ENDPOINT_IN_FLIGHT 4

struct endpoint;

/* What an endpoint tells its writer. */
struct endpoint_events {
	void *context;
	/* It is done with a record: delivered, or dropped for a reason (a word). */
	void (*settled)(void *context, struct record *record, const char *dropped);
	/* Its state may have changed: see endpoint_cause and endpoint_is_idle. */
	void (*changed)(void *context);
};

struct endpoint_counts {
	uint64_t sent_profiles, sent_bytes;
	uint64_t dropped_profiles, dropped_bytes;
	uint64_t requests, retries;
	uint64_t queued_bytes, queued_profiles; /* held now, in flight included */
	uint64_t latency_ns;                    /* of all answered requests together */
};

/* `config` is retained. NULL when memory is short. */
struct endpoint *endpoint_new(const struct abi_context *context, struct http_client *http,
			      const struct endpoint_events *events, struct push_config *config,
			      size_t index);

/* Settles all that it holds as dropped for `reason`, which may be NULL if it
 * holds nothing, and ends its requests and its timer. */
void endpoint_free(struct endpoint *e, const char *reason);

/* New arguments, from the next request on. */
void endpoint_configure(struct endpoint *e, struct push_config *config, size_t index);
const char *endpoint_url(const struct endpoint *e);

/* Queues a record, dropping the oldest where there is no room. settled may be
 * called from within, for this record too. */
void endpoint_push(struct endpoint *e, struct record *record);
/* Begins what can begin; after a run of pushes. */
void endpoint_flush(struct endpoint *e);

/* Waits no longer than need be from now on. */
void endpoint_hurry(struct endpoint *e);
/* Settles all that it holds as dropped. */
void endpoint_drop_all(struct endpoint *e, const char *reason);

bool endpoint_is_idle(const struct endpoint *e);
const char *endpoint_name(const struct endpoint *e);
/* Why it does not deliver, or NULL when it does, or has not tried. */
const char *endpoint_cause(const struct endpoint *e);
const struct endpoint_counts *endpoint_counts(const struct endpoint *e);

#endif

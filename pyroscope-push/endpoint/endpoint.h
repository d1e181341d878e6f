/* SPDX-License-Identifier: Apache-2.0 */
/* One endpoint: a queue of records, bounded in memory, and a few requests in flight. A request has
 * as many series as the server's limits allow, since any answer takes half a second.
 *
 * A failed request keeps its records and is retried with exponential backoff. While one waits, no
 * new one begins; the first success starts all that wait. Retries are limited as in Alloy, so that
 * a payload that no server takes does not wait for ever. With a spool the limit holds only while
 * the server takes other requests: an outage is waited out until records are too old.
 *
 * A record that is given up without a refusal is dropped; or uncertain, if it was once sent whole
 * without an answer. */
#pragma once

#include "abi/log.h"
#include "http/http.h"
#include "pyroscope-push/options.h"
#include "pyroscope-push/spool/record.h"

#define ENDPOINT_IN_FLIGHT 4

struct endpoint;

/* What an endpoint tells its writer, and asks of it. */
struct endpoint_events {
	void *context;
	/* It is done with a record; `reason` is a word where it was dropped. */
	void (*settled)(void *context, struct record *record, enum outcome outcome,
			const char *reason);
	/* What became of these records there (SPOOL_…), before it goes on. 0, or why the spool does
	 * not know. */
	int (*mark)(void *context, uint64_t endpoint, uint32_t what, const uint64_t *sequences,
		    size_t n);
	/* The record's message is to be in memory; need not be any more. */
	int (*load)(void *context, struct record *record);
	void (*unload)(void *context, struct record *record);
	/* A record that broke the server down, for people to look at. */
	void (*set_aside)(void *context, const struct record *record);
	/* Its state may have changed: see endpoint_cause and endpoint_is_idle. */
	void (*changed)(void *context);
};

/* Profiles by the reason for which they were dropped. */
#define ENDPOINT_REASONS 16
struct endpoint_reason {
	const char *word; /* NULL: no more */
	uint64_t profiles;
};

struct endpoint_counts {
	uint64_t sent_profiles, sent_bytes, sent_raw_bytes;
	uint64_t dropped_profiles, dropped_bytes;
	uint64_t uncertain_profiles, expired_profiles;
	uint64_t requests, retries, isolated;
	uint64_t queued_bytes, queued_profiles; /* held now, in flight included */
	uint64_t spooled_profiles;              /* of these, what is in the spool */
	uint64_t latency_ns;                    /* of all answered requests together */
	struct endpoint_reason reasons[ENDPOINT_REASONS];
};

/* `config` is retained. NULL when memory is short. */
struct endpoint *endpoint_new(const struct abi_context *context, struct http_client *http,
			      const struct endpoint_events *events, struct push_config *config,
			      size_t index);

/* As endpoint_leave without `keep`; `reason` may be NULL if it holds nothing. */
void endpoint_free(struct endpoint *e, const char *reason);

/* New arguments, from the next request on. */
void endpoint_configure(struct endpoint *e, struct push_config *config, size_t index);

/* Queues a record, dropping the oldest where there is no room. settled may be called from within,
 * for this record too. `unanswered`: an earlier run has sent it there. */
void endpoint_push(struct endpoint *e, struct record *record, bool unanswered);
/* Sends what is due, and begins new requests unless one waits or the protocol's rate is used up.
 * For the writer: after a run of pushes. */
void endpoint_flush(struct endpoint *e);

/* Waits no longer than need be from now on. */
void endpoint_hurry(struct endpoint *e);
/* Ends its requests and settles all that it holds: what is in the spool, if `keep` and unless a
 * re-send of it would count twice, as left there; what else may have arrived without an answer as
 * uncertain; all else as dropped for `reason`. */
void endpoint_leave(struct endpoint *e, const char *reason, bool keep);

/* Calls `see` with every record that it holds. */
void endpoint_each(struct endpoint *e, void (*see)(void *context, struct record *record),
		   void *context);

/* The spool has given up a segment: what is in it and not on its way is dropped, the rest is told
 * to `lose`. */
void endpoint_evict(struct endpoint *e, uint64_t segment,
		    void (*lose)(void *context, struct record *record), void *context);

bool endpoint_is_idle(const struct endpoint *e);
/* Its arguments now, until endpoint_configure. */
const struct endpoint_options *endpoint_options(const struct endpoint *e);
/* Why it does not deliver, or NULL when it does, or has not tried. */
const char *endpoint_cause(const struct endpoint *e);
const struct endpoint_counts *endpoint_counts(const struct endpoint *e);

/* SPDX-License-Identifier: Apache-2.0 */
/* An endpoint's inside: endpoint.c has the queue and the counts, request.c the requests.
 *
 * Invariants: a record is in exactly one of the queue, `alone`, `held` and a request. It leaves by
 * `settle` of endpoint.c only. A request that is not free has at least one record. */
#pragma once

#include "base/error.h"
#include "pyroscope-push/endpoint/endpoint.h"
#include "pyroscope-push/spool/record-queue.h"

enum request_state {
	REQUEST_FREE,
	REQUEST_SENDING, /* its records are under way */
	REQUEST_PROBING, /* an empty request is: whether the server answers */
	REQUEST_WAITING, /* until `due_ns`, or until another request is accepted */
	REQUEST_LIMITED, /* until `due_ns`: it came too fast */
	REQUEST_ASKING, /* until `due_ns`; then it probes, unless the server has answered by then */
};

/* How often the server may break down after a payload, in between answering. */
#define REQUEST_MAX_KILLS 3

#define ENDPOINT_MARKS 256 /* that are noted at once */

struct request {
	struct endpoint *endpoint;
	struct fifo entries;
	enum request_state state;
	bool by_ingest; /* it has one record, for the server's /ingest */
	int kills; /* how often the connection was lost after the last byte */
	int64_t tries;
	uint64_t accepted; /* the endpoint's requests accepted when it was first sent */
	int64_t due_ns;    /* CLOCK_MONOTONIC, while waiting */
	uint64_t id;       /* of lib/http, while sending or probing */
};

static inline bool request_is_under_way(const struct request *q)
{
	return q->state == REQUEST_SENDING || q->state == REQUEST_PROBING;
}

struct endpoint {
	struct abi_context context;
	struct http_client *http;
	struct endpoint_events events;
	struct push_config *config;
	const struct endpoint_options *options;
	struct fifo queue;
	struct fifo held; /* until the spool can be written */
	int64_t held_until_ns;
	struct fifo alone; /* from requests that were refused: one at a time */
	struct request requests[ENDPOINT_IN_FLIGHT];
	struct endpoint_counts counts;
	uint64_t timer;
	int64_t paid_ns; /* CLOCK_MONOTONIC until which what was sent uses up the protocol's rate */
	uint64_t random;
	uint64_t accepted; /* requests */
	int64_t logged_ns;
	uint64_t unlogged;
	bool hurried;
	char cause[400]; /* empty: none */
	/* Of the last attempt to send. As the next one not on the stack, of which a host's thread
	 * may have little, and libcurl takes 5.6 KB to print. */
	struct error error;
	uint64_t marks[ENDPOINT_MARKS]; /* within endpoint_mark */
};

/* The one way out for records. */
void endpoint_settle_all(struct endpoint *e, struct fifo *f, enum outcome outcome,
			 const char *reason);

/* They went out whole: where a kill comes before the answer, the next run knows. */
void endpoint_note_left(struct endpoint *e, struct fifo *f);
/* The answer is that they are not there, for all that is known. */
void endpoint_note_answered(struct endpoint *e, struct fifo *f);
/* They went out whole and no answer came: whatever ends them, short of an answer, they are
 * uncertain. */
void endpoint_note_unanswered(struct endpoint *e, struct fifo *f);
/* Settles what nobody will send again: as dropped, or as uncertain. */
void endpoint_give_up(struct endpoint *e, struct fifo *f, const char *reason);

typedef bool (*entry_filter)(const struct entry *entry);
/* Notes in the spool what became of those that are meant; NULL: all. 0, or the first failure. */
int endpoint_mark(struct endpoint *e, const struct fifo *f, uint32_t what, entry_filter is_meant);

/* Settles as expired what the server would refuse for its age. */
void endpoint_expire(struct endpoint *e, struct fifo *f);

/* Says that profiles are lost; at most once a minute, since a server can make us say it at every
 * answer. */
void endpoint_log_drop(struct endpoint *e, size_t n, const char *why);

/* Sets the timer for what there is to do without an answer having come. */
void requests_arm(struct endpoint *e);

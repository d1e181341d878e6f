/* SPDX-License-Identifier: Apache-2.0 */
/* A writer's records, in memory and in the spool if there is one, and their rows of the ledger. A
 * record is `spooled` while it is in the spool and unsettled, `in flight` while only memory has it.
 *
 * A spool that cannot be written (a full or read-only disk, a directory that another process has)
 * costs no record. Each batch tries it again; memory holds what the endpoints' queues have room
 * for. */
#pragma once

#include "abi/log.h"
#include "pyroscope-push/spool/record.h"

/* Messages of spooled records that are kept in memory as well, so that they need not be read back
 * when all goes well. */
#define STORE_CACHE_BYTES (8u << 20)

struct store_options {
	const char *directory; /* NULL: no spool */
	const char *owner;
	uint64_t max_bytes;
};

/* What is on its way to the writer, and what of its row was dropped (andiron/status.h). */
typedef uint64_t (*store_coming_fn)(void *context, uint64_t *ret_dropped);

struct store {
	struct abi_context context;
	struct store_options options;
	struct spool_events events;
	struct spool *spool; /* NULL: none, or it could not be opened */
	bool in_batch;       /* and it is on the disk */
	bool batching;
	store_coming_fn coming; /* NULL: unknown */
	void *coming_context;
	uint64_t in_flight, spooled, uncertain;
	struct spool_drop dropped[SPOOL_REASONS]; /* and carried as such */
	size_t cached;
	int64_t tried_ns;   /* CLOCK_MONOTONIC, when opening was tried */
	int failure;        /* of the last batch, to write */
	struct error error; /* why there is no spool, or it cannot be written */
};

void store_init(struct store *s, const struct abi_context *context,
		const struct store_options *options, const struct spool_events *events);
/* Closes the spool; what is in it stays. No record may be held. */
void store_fini(struct store *s);

/* Opens the spool, if there is to be one; `found` of the events is called from within. What goes
 * wrong is told by store_trouble. */
void store_open(struct store *s);

/* Whether opening failed, and it is time to try again. */
bool store_is_due(const struct store *s);

/* A batch of that many samples; store_add belongs between them. After store_end it is on the disk,
 * if there is one. */
void store_begin(struct store *s, uint64_t samples);
void store_end(struct store *s);

/* Keeps in the spool what a kill would cost now. */
void store_keep(struct store *s);

/* Takes a record into the books; it is owed to these endpoints. */
void store_add(struct store *s, struct record *r, const uint64_t *endpoints, size_t n);
/* Takes one that the spool had into the books. */
void store_carry(struct store *s, const struct record *r);

/* Samples that are given up; what the ledger has as dropped by this component is what came here. */
void store_drop(struct store *s, const char *reason, uint64_t samples);

/* An endpoint is done with it; the last one of them ends it. */
void store_settle(struct store *s, struct record *r, enum outcome outcome, const char *reason);

/* The message is in memory: 0, or negative errno (see spool_read). */
int store_load(struct store *s, struct record *r);
/* It need not be any more. */
void store_unload(struct store *s, struct record *r);

/* Its place is void: it lives in memory alone from now on. */
void store_lose_place(struct store *s, struct record *r);
/* Puts a record that only memory has into the spool: whether it could be. */
bool store_rescue(struct store *s, struct record *r, const uint64_t *endpoints, size_t n);

/* 0, or why the spool does not have it. */
int store_mark(struct store *s, uint64_t endpoint, uint32_t what, const uint64_t *sequences,
	       size_t n);
int store_sync(struct store *s);

/* Keeps a copy for people to look at, of the last few that were. */
void store_set_aside(struct store *s, const struct record *r);

/* Why the spool cannot be written, in one line; NULL: it can, or there is none. */
const char *store_trouble(struct store *s);

/* Samples whose fate some endpoint has yet to settle. */
static inline uint64_t store_held(const struct store *s)
{
	return s->in_flight + s->spooled;
}

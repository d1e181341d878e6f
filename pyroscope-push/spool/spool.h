/* SPDX-License-Identifier: Apache-2.0 */
/* The spool: records on disk that a writer has taken and not yet acknowledged. It is a directory of
 * segments. A segment is a run of checksummed entries, only ever appended to. The oldest segment is
 * removed when nothing in it is needed, or at the size limit.
 *
 *  - A batch is written (begin, append…, end) and synced before any of it is sent. `kill -9` or
 *    loss of power costs the batch being written; its begin has the number of its samples.
 *  - Endpoints acknowledge records in any order, by marks. After a lost mark a record is sent
 *    again, the same bytes with the same time. A server that would count it twice (OTLP's) has
 *    "sent" synced before sending.
 *  - A damaged entry ends its segment; the rest of it is ignored.
 *  - spool_keep keeps counts of samples that are in no entry: in a file `page`, rewritten in
 *    place, which needs no room on a full disk. The page names the entry that comes next: what
 *    that and later ones hold is subtracted, so both together are exact at any kill.
 *  - A failed write leaves the spool as it was. The caller keeps the record in memory, and sends
 *    it from there.
 *
 * One thread at a time. Format: spool-entry.h. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <stdint.h>

#define SPOOL_MIN_BYTES     (UINT64_C(8) << 20)
#define SPOOL_MAX_ENDPOINTS 64u /* told apart over the life of what is spooled */

struct spool;

/* Where a record is; sequence 0: nowhere. */
struct spool_place {
	uint64_t sequence; /* its segment in the upper half */
	uint64_t offset;
	uint32_t length; /* of the whole entry */
};

static inline uint64_t spool_segment(const struct spool_place *place)
{
	return place->sequence >> 32;
}

/* A record to be kept: its counts, and the endpoints that have yet to acknowledge it. */
struct spool_item {
	int64_t time_ns;
	uint64_t samples, raw_bytes;
	const uint64_t *endpoints; /* ids that stay the same over restarts */
	size_t n_endpoints;
	struct str message;
};

/* One that an earlier run left. `sent`: among the endpoints, those to which it went out without an
 * answer having come back; `uncertain`: one that is done with it had none. Borrowed. */
struct spool_found {
	struct spool_place place;
	int64_t time_ns;
	uint64_t samples, raw_bytes;
	size_t size; /* of the message */
	const uint64_t *endpoints, *sent;
	size_t n_endpoints, n_sent;
	bool uncertain;
};

/* An operation on the disk, before it is done: for tests. */
enum spool_operation { SPOOL_CREATE, SPOOL_WRITE, SPOOL_SYNC, SPOOL_SYNC_DIRECTORY, SPOOL_UNLINK };

struct spool_op {
	enum spool_operation kind;
	uint64_t segment;
	uint64_t offset;
	struct str data;
};

/* Samples that were given up, by the word for why. */
#define SPOOL_REASONS 14u /* so that the page is within one sector */
struct spool_drop {
	char reason[24]; /* NUL-padded; empty: none, nor after it */
	uint64_t samples;
};

/* What a kill would cost, or make forgotten, in samples. All of it is compared: no padding. */
struct spool_books {
	uint64_t coming;    /* taken for this writer, and in no batch of it yet */
	uint64_t in_memory; /* its own, in no entry of the spool */
	uint64_t uncertain; /* not yet reported to the ledger */
	struct spool_drop dropped[SPOOL_REASONS];
};

struct spool_options {
	const char *directory;  /* made, if its parent is there */
	const char *owner;      /* whose bytes these are: "pyroscope.write" */
	uint64_t max_bytes;     /* of all files together */
	uint64_t segment_bytes; /* 0: a sixteenth of max_bytes */
	/* May refuse an operation with a negative errno. NULL: none is refused. */
	int (*before)(void *context, const struct spool_op *op);
	void *context;
};

struct spool_events {
	void *context;
	/* During open: a record of an earlier run that somebody has yet to settle, oldest first. */
	void (*found)(void *context, const struct spool_found *found);
	/* The places of this segment are void: it had to go for want of room. */
	void (*evicted)(void *context, uint64_t segment);
};

/* Opens the directory and reports what is there. 0, or negative errno and a text: -EBUSY if another
 * process has it, -ENOTSUP if a newer version wrote it, -EINVAL if another owner did. Nothing is
 * deleted then. A disk that cannot be written is no failure here (see spool_failure). Reads all. */
int spool_open(const struct spool_options *options, const struct spool_events *events,
	       struct spool **ret, struct error *err);
/* What is not settled stays for the next run. */
void spool_close(struct spool *s);

/* A batch of that many samples is taken; all appends until spool_end belong to it. 0 or negative
 * errno. spool_end syncs. */
int spool_begin(struct spool *s, uint64_t samples);
int spool_end(struct spool *s);

/* Keeps a record: 0 and its place, or negative errno: -E2BIG if it is larger than the spool may be,
 * else what the disk said. May evict. */
int spool_append(struct spool *s, const struct spool_item *item, struct spool_place *ret);

#define SPOOL_SETTLED   1u /* the endpoint has it, or never will */
#define SPOOL_SENT      2u /* it is about to be sent there, or was, and no answer came */
#define SPOOL_UNSENT    3u /* it was sent there, and surely refused */
#define SPOOL_MOVED     4u /* what is owed to the endpoint is owed to the one named as sequence */
#define SPOOL_UNCERTAIN 5u /* as SETTLED: it was sent there, and the answer was lost */

/* Notes what became of a record at an endpoint. 0 or negative errno. */
int spool_mark(struct spool *s, uint64_t endpoint, uint32_t what, const uint64_t *sequences,
	       size_t n);
int spool_sync(struct spool *s);

/* Keeps these for the next run, in place of what was kept before. After spool_open that is what the
 * run before left, until the first call. 0 or negative errno. One pwrite, none where nothing has
 * changed. Not between spool_begin and spool_end. */
int spool_keep(struct spool *s, const struct spool_books *books);

/* The message of a record, appended: 0, -EBADMSG when it is damaged, -ENOENT when its segment is
 * gone, or negative errno. */
int spool_read(struct spool *s, const struct spool_place *place, struct buf *out);

/* Nobody needs the record any more. */
void spool_release(struct spool *s, const struct spool_place *place);

uint64_t spool_bytes(const struct spool *s);
/* The last time of a record, over all that was spooled; 0: none. */
int64_t spool_last_time(const struct spool *s);
/* Samples that the run before took and did not live to write. */
uint64_t spool_lost(const struct spool *s);
/* Samples of which the run before did not live to say that they are uncertain, those not counted
 * that are still owed to somebody. */
uint64_t spool_uncertain(const struct spool *s);
/* What the run before gave up and did not live to say, SPOOL_REASONS of them; valid until the first
 * spool_keep. */
const struct spool_drop *spool_dropped(const struct spool *s);
/* Why the last write failed; 0 when it did not. */
int spool_failure(const struct spool *s);

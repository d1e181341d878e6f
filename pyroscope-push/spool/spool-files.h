/* SPDX-License-Identifier: Apache-2.0 */
/* The spool's inside: spool.c appends, spool-files.c creates and removes segments, spool-scan.c
 * finds what an earlier run left.
 *
 * Invariants: segments are in the order of their numbers, which only rise. The last is written to
 * while fd ≥ 0. `bytes` is the sum of theirs. Segments are removed from the front only, so a mark
 * is newer than the record that it marks. */
#pragma once

#include "base/vec.h"
#include "pyroscope-push/spool/spool-entry.h"
#include "pyroscope-push/spool/spool.h"

#include <stdio.h>

#define SPOOL_NAME_MAX 32

struct segment {
	uint64_t number;
	uint64_t bytes;
	uint64_t live; /* records that somebody needs */
};

struct spool {
	struct spool_events events;
	char owner[ENTRY_OWNER_BYTES];
	uint64_t max_bytes, segment_bytes;
	int (*before)(void *context, const struct spool_op *op);
	void *context;
	int directory, lock;
	int fd; /* of the last segment, -1: the next append makes one */
	VEC(struct segment) segments;
	uint64_t bytes;
	uint64_t last_number;
	uint32_t next_entry;
	int64_t last_time;
	uint64_t lost, uncertain;
	struct spool_books kept; /* in the page, as of the entry `kept_at` */
	uint64_t kept_at;
	int page; /* -1: none */
	int failure;
	struct buf scratch; /* an entry under way */
};

static inline void segment_name(uint64_t number, char out[SPOOL_NAME_MAX])
{
	snprintf(out, SPOOL_NAME_MAX, "%016llx.spool", (unsigned long long)number);
}

static inline int segment_op(struct spool *s, enum spool_operation kind, uint64_t number)
{
	struct spool_op op = {.kind = kind, .segment = number};

	return s->before ? s->before(s->context, &op) : 0;
}

/* Opens (and makes) the directory, and takes it for this process alone. */
int files_open(struct spool *s, const char *directory, struct error *err);

/* Begins a segment; the one before is synced and closed. 0 or negative errno, and then all is as it
 * was. */
int files_create(struct spool *s);

/* Removes the oldest segment. 0 or negative errno (it is still there). */
int files_remove_first(struct spool *s);
/* Removes what nobody needs from the front. */
void files_trim(struct spool *s);

int files_write(struct spool *s, struct str data);

/* Opens the page and reads what the run before kept; without one there is nothing kept. */
void page_open(struct spool *s);

/* Reads all segments, tells of what is owed, and removes what is not. 0 or negative errno and a
 * text. */
int scan(struct spool *s, struct error *err);

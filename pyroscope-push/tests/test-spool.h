/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of the spool: a directory of its own, records whose bytes follow from their number, and
 * a check of all that comes back. */
#pragma once

#include "pyroscope-push/spool/spool.h"

#define TEST_SPOOL_MAX 4096

struct test_found {
	struct spool_place place;
	uint64_t index;
	uint32_t owed, sent; /* bit 0: endpoint 1, bit 1: endpoint 2 */
};

struct spool_test {
	char directory[64];
	struct spool_options options;
	struct spool_events events;
	struct spool *spool;
	uint64_t n_records; /* appended; the next one's number */
	struct spool_place places[TEST_SPOOL_MAX];
	struct test_found found[TEST_SPOOL_MAX];
	size_t n_found, n_evicted;
};

/* A message of record `index`: its number, then bytes that follow from it. */
void spool_test_message(uint64_t index, struct buf *out);

/* A new directory; 0 is 8 MiB, and its sixteenth. */
void spool_test_open(struct spool_test *t, uint64_t max_bytes, uint64_t segment_bytes);
int spool_test_try_open(struct spool_test *t);
/* Opens the directory that is there; what is found has been checked. */
void spool_test_find(struct spool_test *t);
void spool_test_reopen(struct spool_test *t);
/* Closes it and removes the directory. */
void spool_test_close(struct spool_test *t);

/* Appends the next record, of 3 samples, owed to endpoints 1 and 2. */
int spool_test_try(struct spool_test *t);
void spool_test_append(struct spool_test *t);
void spool_test_batch(struct spool_test *t, int n);

uint64_t spool_test_size(const struct spool_test *t);
/* Changes a few bytes of a file, or cuts it off. */
void spool_test_damage(const struct spool_test *t, unsigned int *seed);
/* Makes of a segment one of a later version. */
void spool_test_newer(int fd);

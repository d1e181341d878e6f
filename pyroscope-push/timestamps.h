/* SPDX-License-Identifier: Apache-2.0 */
/* Times for profiles. A server keeps one profile of a series and a time, so every profile gets a
 * time of its own: they rise strictly over all series of a writer, which needs no memory of series,
 * and over its restarts, where it has a spool to remember the last one. The low bits are the
 * process's own, since many hosts may write one series. */
#pragma once

#include <stdint.h>

#define TIMES_STEP_NS 4096 /* a power of two: the bits below it are the process's */
/* A clock that was set back further than this is followed, with other low bits;
 * the server would take nothing from so far ahead. */
#define TIMES_MAX_LEAD_NS (INT64_C(300) * 1000000000)

struct times {
	int64_t last;
	int64_t tag; /* 0 ≤ tag < TIMES_STEP_NS */
};

/* `seed` is any number that other processes hardly share. */
struct times times_init(uint64_t seed);

/* Goes on after `last`, the last time of an earlier run. */
void times_resume(struct times *t, int64_t last);

/* The time for a profile whose window ended at end_ns: within TIMES_STEP_NS of it unless an earlier
 * one took that. O(1). */
int64_t times_next(struct times *t, int64_t end_ns);

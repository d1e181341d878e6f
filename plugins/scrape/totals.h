/* SPDX-License-Identifier: Apache-2.0 */
/* What was counted between two scrapes, where a server gives totals since its start: Go's
 * allocations, and waits for locks and channels.
 *
 * The profile is not decoded and encoded again: its messages are copied as they stand but for
 * samples, whose differenced values become the growth since the last time. A stack is known again
 * by its addresses, functions and labels. Kept are 24 bytes a stack, of so many stacks of a
 * profile, and so many bytes of all profiles of a component, as stand below.
 *
 * A sum that has shrunk means another process: then what is there counts whole, since it came about
 * within the interval. Source of the wire format: google/pprof, proto/profile.proto. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "scrape/settings.h"

#define TOTALS_MAX_STACKS (1u << 20)
#define TOTALS_MAX_BYTES  ((size_t)256 << 20)

struct totals;

/* `which`: TOTALS_ALLOC or TOTALS_DELAY. NULL when memory is short. */
struct totals *totals_new(int which);
void totals_free(struct totals *t);

/* What totals_bytes may become: what the others leave of TOTALS_MAX_BYTES, which it is at first. */
void totals_limit(struct totals *t, size_t bytes);

/* Appends to `out` what was counted since the last call, as a pprof profile without compression. 1:
 * there is nothing to compare with yet, `out` is as before, and the profile is remembered. 0,
 * -ENOMEM, or -EBADMSG or -E2BIG and a text that follows "is" (what was remembered stays). Values
 * that cannot be differenced stay. *ret_samples: how many there are. O(size). */
int totals_difference(struct totals *t, struct str profile, int64_t now_ns, struct buf *out,
		      uint64_t *ret_samples, struct error *err);

/* What is kept. O(1). */
size_t totals_bytes(const struct totals *t);

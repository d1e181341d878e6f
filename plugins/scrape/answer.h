/* SPDX-License-Identifier: Apache-2.0 */
/* An answer of a target: whether it is a profile, and what of it is sent on. The bytes are
 * untrusted. They are read through once, uncompressed, with bounds; nothing is kept of them. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "scrape/totals.h"

/* Uncompressed: what a batch can hold. */
#define ANSWER_MAX_RAW ((size_t)48 << 20)

struct profile_size {
	uint64_t raw_bytes; /* uncompressed */
	uint64_t n_stacks;
};

/* Says whether `body` is a whole pprof profile, gzip'd or not, and how large it is. One that is
 * gzip'd twice (a file that a server compressed on its way) becomes one that is so once. `scratch`
 * is cleared and holds it uncompressed afterwards, unless it came so: *ret_raw is what to read. 0,
 * -ENOMEM, or -EBADMSG or -E2BIG and a text that follows "the answer". O(size). */
int answer_read(struct buf *body, struct buf *scratch, struct profile_size *ret,
		struct str *ret_raw, struct error *err);

/* The same for a profile of totals: *ret_body is the gzip'd profile of what was counted since the
 * last time, its size in *ret. 1: there is nothing to compare with yet. */
int answer_subtract(struct str raw, struct totals *totals, int64_t now_ns, struct buf *ret_body,
		    struct profile_size *ret, struct error *err);

/* SPDX-License-Identifier: Apache-2.0 */
/* The batches of the last seconds or minutes, to be looked at again and again: they are kept as
 * they are, and nothing is copied until somebody looks. They are bounded by age and by bytes; the
 * oldest go first. What somebody else has encoded is not kept: it has no rows.
 *
 * Used by one thread at a time. */
#pragma once

#include "base/vec.h"

#include <andiron/batch.h>

struct recent_batches {
	const struct andiron_batch **p;
	size_t n, capacity;
};

struct recent {
	int64_t keep_ns; /* the owner's to set, both */
	uint64_t max_bytes;
	uint64_t bytes;
	struct recent_batches batches; /* from the oldest */
};

/* Takes a reference, and forgets what is too old or too much. O(batches kept). */
void recent_take(struct recent *r, const struct andiron_batch *batch);

/* Forgets those that ended before that time: where no batches come, time passes, too. */
void recent_forget(struct recent *r, int64_t before_ns);

void recent_fini(struct recent *r);

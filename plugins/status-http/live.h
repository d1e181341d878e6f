/* SPDX-License-Identifier: Apache-2.0 */
/* The profiles of the last minutes, to be looked at: batches that came to the component's receiver
 * are kept as they are, and nothing is copied until somebody looks. They are bounded by age and by
 * bytes; the oldest go first. What somebody else has encoded is not kept: it has no rows.
 *
 * A look is made from references of its own, so that a worker may draw it while batches come. */
#pragma once

#include "base/buf.h"
#include "base/vec.h"

#include <andiron/batch.h>

#define LIVE_BYTES ((uint64_t)16 << 20)

struct live_batches {
	const struct andiron_batch **p;
	size_t n, capacity;
};

struct live {
	int64_t keep_ns; /* the owner's to set */
	uint64_t bytes;
	struct live_batches batches; /* from the oldest */
};

/* Takes a reference, and forgets what is too old or too much. O(batches kept). */
void live_take(struct live *l, const struct andiron_batch *batch);
void live_fini(struct live *l);

enum live_form { LIVE_PPROF, LIVE_FLAME, LIVE_COMPARED };

/* The batches of the last so many ns, and for LIVE_COMPARED those of as long a time that ended
 * against_ns before now. */
struct live_look {
	enum live_form form;
	int64_t last_ns, against_ns;
	struct live_batches after, before;
	struct buf out; /* the answer */
	int result;
};

/* References to the batches that the look is of, by form and times. 0 or -ENOMEM. */
int live_look_init(struct live_look *k, const struct live *l, int64_t now_ns);
void live_look_fini(struct live_look *k);

/* Draws it: result is 0 and `out` has it; -ENODATA: nothing was sampled then; -ENOMEM. [any],
 * O(frames of all samples). */
void live_look_draw(struct live_look *k);

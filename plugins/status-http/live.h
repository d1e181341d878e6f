/* SPDX-License-Identifier: Apache-2.0 */
/* A look at the profiles of the last minutes, which came to the component's receiver. It is made
 * from references of its own, so that a worker may draw it while batches come. */
#pragma once

#include "base/buf.h"
#include "export/recent.h"

#define LIVE_BYTES ((uint64_t)16 << 20)

enum live_form { LIVE_PPROF, LIVE_FLAME, LIVE_COMPARED };

/* The batches of the last so many ns, and for LIVE_COMPARED those of as long a time that ended
 * against_ns before now. */
struct live_look {
	enum live_form form;
	int64_t last_ns, against_ns;
	struct recent_batches after, before;
	struct buf out; /* the answer */
	int result;
	bool lacks_before; /* -ENODATA is of the time compared with */
};

/* References to the batches that the look is of, by form and times. 0 or -ENOMEM. */
int live_look_init(struct live_look *k, const struct recent *kept, int64_t now_ns);
void live_look_fini(struct live_look *k);

/* Draws it: result is 0 and `out` has it; -ENODATA: nothing was sampled then; -ENOMEM. [any],
 * O(frames of all samples). */
void live_look_draw(struct live_look *k);

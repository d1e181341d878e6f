/* SPDX-License-Identifier: Apache-2.0 */
/* Samples that a profile of ours says were lost: comments "andiron: lost N samples: REASON"
 * (export/pprof.h). Files that were merged repeat the reasons, so they are summed. */
#pragma once

#include "pprof/decode.h"

#define LOSSES_MAX 32u /* reasons; more, which nothing of ours writes, are summed as one */

struct loss {
	struct str reason; /* borrowed from the profile, or static */
	uint64_t samples;
};

struct losses {
	struct loss list[LOSSES_MAX];
	size_t n;
};

/* O(comments · LOSSES_MAX). */
void losses_read(struct losses *l, const struct profile *p);

/* Whether a comment tells of a loss. */
bool losses_is(struct str comment);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See malloc-tuning.h. glibc by itself gives every thread an arena that no other takes from, and raises what it keeps
 * with the largest block that was ever freed, up to 64 MB: for throughput that an agent of half a percent of a core has
 * no need of. Half of what it had allocated was free memory. With the two thresholds set, neither moves.
 */
#include "cli/malloc-tuning.h"

#include <features.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#define KEEP_BYTES (64 << 10)

void heap_keep_small(void)
{
#ifdef __GLIBC__
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_TRIM_THRESHOLD, KEEP_BYTES);
	mallopt(M_MMAP_THRESHOLD, KEEP_BYTES);
#endif
}

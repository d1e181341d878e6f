/* SPDX-License-Identifier: Apache-2.0 */
/* See malloc-tuning.h. By default glibc gives every thread an arena of its own, and raises its
 * thresholds to the largest block that was ever freed, up to 64 MB. That serves throughput, which
 * an agent of half a percent of a core does not need: half of what it had allocated was free
 * memory. Thresholds that are set do not move. */
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

/* SPDX-License-Identifier: Apache-2.0 */
/* Times that rise strictly. Contract in times.h. */
#include "times.h"

#include "base/check.h"
#include "base/hash.h"

struct times times_init(uint64_t seed)
{
	return (struct times){.tag = (int64_t)(hash_u64(seed) % TIMES_STEP_NS)};
}

int64_t times_next(struct times *t, int64_t end_ns)
{
	int64_t time = (end_ns & ~(int64_t)(TIMES_STEP_NS - 1)) | t->tag;

	if (time <= t->last && t->last - time < TIMES_MAX_LEAD_NS)
		time = t->last + TIMES_STEP_NS;
	check(time % TIMES_STEP_NS == t->tag || time < 0);
	t->last = time;
	return time;
}

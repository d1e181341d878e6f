/* SPDX-License-Identifier: Apache-2.0 */
/* Times that rise strictly. Contract in timestamps.h. */
#include "pyroscope-push/timestamps.h"

#include "base/check.h"
#include "base/hash.h"

struct times times_init(uint64_t seed)
{
	return (struct times){.tag = (int64_t)(hash_u64(seed) % TIMES_STEP_NS)};
}

void times_resume(struct times *t, int64_t last)
{
	if (last > t->last)
		t->last = last;
}

int64_t times_next(struct times *t, int64_t end_ns)
{
	int64_t slot = end_ns & ~(int64_t)(TIMES_STEP_NS - 1);
	int64_t last = t->last & ~(int64_t)(TIMES_STEP_NS - 1);
	int64_t time;

	if (slot <= last && last - slot < TIMES_MAX_LEAD_NS)
		slot = last + TIMES_STEP_NS;
	else if (slot <= last) /* times that it goes through again are taken */
		t->tag = (t->tag + 1) % TIMES_STEP_NS;
	time = slot | t->tag;
	check(time % TIMES_STEP_NS == t->tag || time < 0);
	t->last = time;
	return time;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See haste.h. Who has it is known by the policy, which nothing else here gives. */
#include "proc/haste.h"

#include "base/str.h"

#include <dirent.h>
#include <sched.h>
#include <sys/resource.h>

#define POLICY SCHED_RR
/* A thread that is made while the list is read may be missed by that reading. */
#define READINGS_MAX 8

static const struct sched_param lowest = {.sched_priority = 1}; /* of those of real time */

bool haste_begin(void)
{
	/* Both are the calling thread's, on Linux. */
	if (sched_getscheduler(0) != SCHED_OTHER || getpriority(PRIO_PROCESS, 0) > 0)
		return false;
	return sched_setscheduler(0, POLICY, &lowest) == 0;
}

bool haste_has(void)
{
	return sched_getscheduler(0) == POLICY;
}

static bool leave(int thread)
{
	const struct sched_param none = {0};

	return sched_getscheduler(thread) == POLICY &&
	       sched_setscheduler(thread, SCHED_OTHER, &none) == 0;
}

void haste_leave(void)
{
	leave(0);
}

/* Whether a thread had it. */
static bool leave_all(DIR *threads)
{
	const struct dirent *entry;
	bool any = false;
	uint64_t thread;

	rewinddir(threads);
	while ((entry = readdir(threads)))
		if (str_u64(str_of(entry->d_name), &thread))
			any |= leave((int)thread);
	return any;
}

void haste_end(void)
{
	DIR *threads = opendir("/proc/self/task");

	if (!threads) {
		haste_leave();
		return;
	}
	for (int i = 0; i < READINGS_MAX && leave_all(threads); i++)
		;
	closedir(threads);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel says the slice that it was given, where it has slices for fair threads. */
#include "runtime-kit/time-slice.h"

#include "testing/test.h"

#include <linux/sched/types.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

static bool kernel_has_slices(void)
{
	struct utsname name;
	int major, minor;

	expect(uname(&name) == 0 && sscanf(name.release, "%d.%d", &major, &minor) == 2);
	return major > 6 || (major == 6 && minor >= 12);
}

TEST(a_thread_has_the_shortest_slice_and_keeps_the_rest)
{
	struct sched_attr before = {0}, after = {0};

	expect(syscall(SYS_sched_getattr, 0, &before, sizeof(before), 0) == 0);
	thread_shorten_slice();
	expect(syscall(SYS_sched_getattr, 0, &after, sizeof(after), 0) == 0);
	if (kernel_has_slices())
		expect_eq(after.sched_runtime, 100000);
	expect_eq(after.sched_policy, before.sched_policy);
	expect_eq(after.sched_nice, before.sched_nice);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's deadline is its slice behind its turn, and the nearest deadline runs first: a short
 * slice brings it forward (sched_attr.sched_runtime in sched_setattr(2)). */
#include "runtime-kit/time-slice.h"

#include <linux/sched/types.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLICE_NS 100000u /* the kernel's least */

void thread_shorten_slice(void)
{
	struct sched_attr attr = {0};

	if (syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) != 0)
		return;
	attr.sched_runtime = SLICE_NS;
	syscall(SYS_sched_setattr, 0, &attr, 0);
}

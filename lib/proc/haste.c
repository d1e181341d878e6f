/* SPDX-License-Identifier: Apache-2.0 */
/* See haste.h. To raise the value again, as the end does, takes no privilege. */
#include "proc/haste.h"

#include <sys/resource.h>

int haste_begin(int gain)
{
	int nice = getpriority(PRIO_PROCESS, 0); /* of the calling thread */

	setpriority(PRIO_PROCESS, 0, nice - gain);
	return nice;
}

void haste_end(int nice)
{
	setpriority(PRIO_PROCESS, 0, nice);
}

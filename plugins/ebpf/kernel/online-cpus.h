/* SPDX-License-Identifier: Apache-2.0 */
/* The CPUs that are online, by /sys/devices/system/cpu/online. */
#pragma once

#include <stdint.h>

/* Calls fn for each, until it returns something else than 0, which is returned. Else 0; -EINVAL:
 * the list cannot be understood; or a negative errno of reading it. */
int online_cpus_each(int (*fn)(void *context, int cpu), void *context);
/* One more than the number of the last one, at least 1. */
uint32_t online_cpus_end(void);

/* The same for each CPU of a list as the kernel writes them ("0-3,8"). -EINVAL on anything else. */
int cpu_list_each(const char *list, int (*fn)(void *context, int cpu), void *context);

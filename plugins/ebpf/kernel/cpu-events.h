/* SPDX-License-Identifier: Apache-2.0 */
/* CPUs that come online or go offline, as the kernel announces them: a socket of its uevents. It
 * costs nothing while nothing happens. It reports a CPU that goes and is back at once, whose events
 * have ended, too. */
#pragma once

#include <stdbool.h>

/* A descriptor, readable when something was announced; or a negative errno. No privilege needed. */
int cpu_events_open(void);
/* Takes all that was announced: whether a CPU was among it. True also where announcements were
 * lost. */
bool cpu_events_take(int fd);

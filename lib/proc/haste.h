/* SPDX-License-Identifier: Apache-2.0 */
/* Haste: a process goes before others for the short while of its start. Where ten programs wait for
 * each CPU, a start of 0.1 s takes ten times as long, since each step and each hand-over between
 * threads waits for its turn. Real time, and not a nice value: that counts only among the tasks of
 * a session or cgroup, and what keeps a node busy is in others. Who may not do that (CAP_SYS_NICE,
 * or RLIMIT_RTPRIO) starts as others do.
 *
 * Threads and processes inherit it. So it ends for all threads at once, and a process that is made
 * meanwhile begins with haste_leave, before it executes anything. */
#pragma once

#include <stdbool.h>

/* The calling thread's, and what it makes from here on. False: nothing was changed, since it is not
 * allowed, or since somebody has scheduled this thread in another way (a positive nice value is
 * one). */
bool haste_begin(void);
bool haste_has(void);
/* Ends it for the calling thread. */
void haste_leave(void);
/* Ends it for each thread of the process. Needs no privilege. O(threads). */
void haste_end(void);

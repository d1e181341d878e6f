/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that goes before others for a while, by a lower nice value (setpriority(2), which on
 * Linux is of one thread). It is for work that is little and must be done soon: on a machine whose
 * CPUs are all busy, each millisecond of it would wait for ten of others.
 *
 * Threads and children that the thread makes meanwhile inherit the value for good, so it makes none
 * but such as are to have it. */
#pragma once

#define HASTE_GAIN 10
/* For a start, which is done once: beside ten loops on its CPU a thread has half of it at -10, and
 * nine tenths at -20. */
#define HASTE_GAIN_START 20

/* Goes before others by so much, as far as there are values. Returns the nice value to give to
 * haste_end. No more than a wish: where the kernel refuses (neither CAP_SYS_NICE nor RLIMIT_NICE),
 * nothing changes. */
int haste_begin(int gain);
void haste_end(int nice);

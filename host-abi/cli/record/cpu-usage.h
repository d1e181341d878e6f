/* SPDX-License-Identifier: Apache-2.0 */
/* How busy the machine was, from /proc/stat. */
#pragma once

#include "base/str.h"

/* Time of all CPUs since boot, in ticks. */
struct machine_time {
	uint64_t busy;
	uint64_t total;
};

/* All zero if it cannot be read. */
struct machine_time machine_time(void);

/* The first line of /proc/stat; false on anything else. */
bool machine_parse(struct str text, struct machine_time *ret);

/* Busy part between two times in per cent, 0 if no time has passed. */
double machine_busy(const struct machine_time *from, const struct machine_time *to);

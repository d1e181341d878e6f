/* SPDX-License-Identifier: Apache-2.0 */
/* Time in nanoseconds, and Go's duration notation ("15s", "1m30s", "500ms"). */
#pragma once

#include "base/str.h"

#include <stdint.h>
#include <time.h>

#define NS_PER_SEC  INT64_C(1000000000)
#define NS_PER_MSEC INT64_C(1000000)

/* Not inline: some hundred callers would each have it. */
int64_t clock_ns(clockid_t clock);

static inline int64_t clock_mono(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static inline int64_t clock_real(void)
{
	return clock_ns(CLOCK_REALTIME);
}

static inline int64_t clock_boot(void)
{
	return clock_ns(CLOCK_BOOTTIME);
}

/* The whole slice as a duration (units ns us µs ms s m h, fractions, a sign;
 * "0" needs no unit). False on anything else or overflow. */
bool duration_parse(struct str s, int64_t *ret_ns);

/* "1m30s" into `out`, cut off at n; returns out. */
char *duration_format(int64_t ns, char *out, size_t n);

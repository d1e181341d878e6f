/* SPDX-License-Identifier: Apache-2.0 */
/* What reports about a host have in common; they themselves are in host.h. */
#pragma once

#include "base/buf.h"

#include <stdint.h>

/* A moment of CLOCK_REALTIME as a JSON string, to the second, in UTC. */
void report_put_time(struct buf *out, int64_t real_ns);

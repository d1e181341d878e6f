/* SPDX-License-Identifier: Apache-2.0 */
/* What reports about a host have in common; they themselves are in host.h. */
#pragma once

#include "base/buf.h"

#include "host/graph/instance.h"

#include <stdint.h>

struct plan_waiting;

/* A moment of CLOCK_REALTIME as a JSON string, to the second, in UTC. */
void report_put_time(struct buf *out, int64_t real_ns);

/* The health of a component that is not there yet, for it waits for a value. */
struct health report_waiting(const struct host *host, const struct plan_waiting *waiting);

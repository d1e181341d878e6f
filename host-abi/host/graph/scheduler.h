/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which instance takes its next step. On the loop thread.
 *
 * An instance starts when everything downstream of it and every service it needs has started or
 * failed to. One that retires drains when everything upstream that retires has drained and its own
 * queue is empty. It stops when they have stopped, and is destroyed when its work has returned. A
 * service outlives its users. Stopping the host retires all instances. */
#pragma once

#include "host/state.h"

/* Takes every step that can be taken now; host_poke asks for it when one may have become possible.
 * O(instances^2) per step. */
void scheduler_advance(struct host *host);

/* Begins to retire an instance, or moves its deadline forward. */
void scheduler_retire(struct instance *i, int64_t deadline_ns);

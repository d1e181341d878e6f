/* SPDX-License-Identifier: Apache-2.0 */
/* How far an agent has come with the profiles of pods, read from its metrics (Prometheus's text,
 * of `status.http`). Each figure stands for a step of the way, so the first that is 0 says where
 * to look. Figures of several components or writers are added up. */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

struct agent_state {
	bool is_andiron, has_kubernetes;
	uint64_t pods, targets; /* known of an API server or a kubelet, and what is made of them */
	uint64_t matched;       /* targets that have processes */
	uint64_t taken, delivered, waiting, dropped; /* samples; waiting: in queues or on disk */
};

/* O(bytes). Lines that cannot be read count for nothing. */
void agent_state_read(struct str metrics, struct agent_state *ret);

/* One sentence: where the way ends. `before`: what was delivered when it was asked first. */
void agent_state_put(const struct agent_state *s, uint64_t before, struct buf *out);

/* What to do about it: never NULL. */
const char *agent_state_fix(const struct agent_state *s);

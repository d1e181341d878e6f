/* SPDX-License-Identifier: Apache-2.0 */
/* Which components may run in a process of their own (`isolate = true`): those that are given
 * batches, or make targets, and need nothing of the agent but that. */
#pragma once

#include "host/registry.h"

/* Whether a component passes on what it is given, and is no end of a path. */
bool isolation_forwards(const struct andiron_component *c);

/* Why the component may not, as a sentence; NULL: it may. */
const char *isolation_refusal(const struct registered_component *registered);

/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at the targets of a graph that runs: what each component exports, what it drops and why,
 * and whether anything still moves. For people who ask; the flow itself needs none of it, so the
 * host was told to keep targets (host_options). All on the loop thread. */
#pragma once

#include "abi/target-list.h"
#include "host/host.h"

#include <andiron/dropped-targets.h>
#include <andiron/target-processes.h>

/* For how long nothing has moved: every component that exports targets has said at least once
 * which, none has said anything else since, and none has work under way. -1 as long as one has not;
 * *ret_waiting then names it (until the next call), NULL otherwise. */
int64_t look_quiet_ns(struct host *host, const char **ret_waiting);

/* Calls fn for each row that the component exports now (`change` says nothing), in order. 0, or
 * -ENOENT if no component has this id. */
int look_targets(struct host *host, const char *component, target_change_fn fn, void *context);

/* Has the component add what it drops of what it was given (andiron/dropped-targets.h); one that
 * cannot tell adds nothing. 0, -ENOENT, -EBUSY while it is being called (try again), -ENOMEM. */
int inspect_dropped_targets(struct host *host, const char *component,
			    const struct andiron_dropped_targets_sink *sink);

/* The same for the processes of its targets (andiron/target-processes.h). */
int inspect_target_processes(struct host *host, const char *component,
			     const struct andiron_target_processes_sink *sink);

/* The state and text of a component's health, ANDIRON_HEALTH_*; the text is copied into `ret`. 0 or
 * -ENOENT. */
int look_health(struct host *host, const char *component, uint32_t *ret_state, struct buf *ret);

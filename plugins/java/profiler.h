/* SPDX-License-Identifier: Apache-2.0 */
/* The profiler of JVMs: a session (session.h) for each target's process, stepped on workers when it
 * is due, when its JVM has answered, and when its JVM ends. What it takes is sent on as it is.
 *
 * Bounded: processes that are looked at, JVMs that are attached to at once, and bytes of a
 * recording. What is beyond says so in its target's status. */
#pragma once

#include "abi/log.h"
#include "abi/target-list.h"
#include "java/settings.h"

#include <andiron/target-processes.h>

struct profiler;

struct profiler_counts {
	uint64_t targets, attached, failing;                   /* now */
	uint64_t recordings, bytes, failures, lost_recordings; /* since the start */
};

/* Takes the settings over, also on failure. */
int profiler_new(const struct abi_context *context, struct settings *settings,
		 struct profiler **ret);
/* No step may be under way. Removes the files of JVMs that could not be stopped in time. */
void profiler_free(struct profiler *p);

/* Looks for the library, so that its absence is said at once. Begins with the targets. */
void profiler_start(struct profiler *p);
/* Stops profiling in every JVM, sends what they recorded, then host->drained. */
void profiler_drain(struct profiler *p);
/* No timers and watches from then on. What still runs in a JVM ends by its own time limit. */
void profiler_stop(struct profiler *p);

/* New settings, taken over: what is recorded now is taken as it was begun. */
void profiler_update(struct profiler *p, struct settings *settings);
void profiler_targets(struct profiler *p, const struct andiron_targets *update);

struct profiler_counts profiler_counts(const struct profiler *p);

/* For andiron.target-processes/1. 0 or -ENOMEM. */
int profiler_each(struct profiler *p, const struct andiron_target_processes_sink *sink);

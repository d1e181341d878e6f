/* SPDX-License-Identifier: Apache-2.0 */
/* andiron.process-events/1: processes as they come and go, seen by the kernel and not by polling. A
 * process is (pid in the host's namespace, start time since boot), because pids are reused. */
#ifndef ANDIRON_PROCESS_EVENTS_H
#define ANDIRON_PROCESS_EVENTS_H

#include <andiron/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ANDIRON_PROCESS_EVENTS_ID "andiron.process-events/1"

#define ANDIRON_PROCESS_EXISTING 1u /* was there when the subscription began */
#define ANDIRON_PROCESS_FORK     2u
#define ANDIRON_PROCESS_EXEC     3u
#define ANDIRON_PROCESS_EXIT     4u /* of the last thread */
#define ANDIRON_PROCESS_LOST     5u /* events were lost (pid 0): what is known may be stale */

/* start_ns: since boot, CLOCK_BOOTTIME; cgroup: id in the hierarchy that holds containers, 0 if
 * unknown; comm NUL-terminated. Frozen. */
struct andiron_process_event {
	uint32_t kind;
	uint32_t pid;
	uint32_t parent;
	uint32_t reserved;
	uint64_t start_ns;
	uint64_t cgroup;
	char comm[16];
};

/* Events in the order in which they happened, borrowed for the call. Called [loop] [serial] of the
 * subscriber. */
typedef void (*andiron_process_fn)(void *arg, const struct andiron_process_event *events,
				   uint64_t n_events);

struct andiron_process_events {
	uint32_t size;
	uint32_t reserved;

	/* Begins a subscription of `instance`: first one EXISTING event per process that runs, then
	 * what happens. Events reach the subscriber within 250 ms. A process may be told as
	 * EXISTING and again by its FORK, and an EXIT may come twice: events say what is so, and
	 * knowing it already is no error. -ENOMEM, or why there are no events (the service's health
	 * has the text). [any]: the service locks for itself. */
	int32_t (*subscribe)(void *self, uint64_t instance, andiron_process_fn fn, void *arg,
			     uint64_t *ret_subscription);

	/* Ends it; fn is not called after this has returned. [any]. */
	void (*unsubscribe)(void *self, uint64_t subscription);
};

#ifdef __cplusplus
}
#endif

#endif

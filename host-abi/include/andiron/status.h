/* SPDX-License-Identifier: Apache-2.0 */
/* andiron.status/1: what the host knows of the graph, for components that publish it (a metrics
 * endpoint, a readiness probe) or store it (a writer's row in its spool). Offered by the host;
 * `self` is the extension's. */
#ifndef ANDIRON_STATUS_H
#define ANDIRON_STATUS_H

#include <andiron/host.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ANDIRON_STATUS_ID "andiron.status/1"

#define ANDIRON_STATUS_METRICS 1u /* Prometheus text, version 0.0.4 */
#define ANDIRON_STATUS_HEALTH  2u /* JSON: "healthy"; each component's id, health, message, since */
/* JSON: a list of components with the fields of Alloy's /api/v0/web/components. Of a host that does
 * not know it, -EINVAL. */
#define ANDIRON_STATUS_COMPONENTS 3u
/* JSON: for each component that can tell it, its targets, the processes of each, and why it has
 * none. -EBUSY while such a component is at work: ask again. Of a host that does not know it,
 * -EINVAL. */
#define ANDIRON_STATUS_TARGETS 4u

/* A text, once, borrowed for the call. */
typedef void (*andiron_text_fn)(void *arg, const struct andiron_str *text);

/* A component as it is now; health as ANDIRON_HEALTH_*, flags as ANDIRON_COMPONENT_*. `live` is 0
 * until it has started. Borrowed for the call. Frozen. */
struct andiron_component_state {
	struct andiron_str id, message;
	uint32_t flags, health;
	uint32_t live, reserved;
};

typedef void (*andiron_component_fn)(void *arg, const struct andiron_component_state *state);

struct andiron_status {
	uint32_t size;
	uint32_t reserved;

	/* 0 and a text, or a negative errno (-ENOMEM, -EINVAL) and none. [loop], O(what there is).
	 */
	int32_t (*write)(void *self, uint32_t what, andiron_text_fn fn, void *arg);

	/* Calls fn for each component. 0. [loop], O(components). */
	int32_t (*components)(void *self, andiron_component_fn fn, void *arg);

	/* Samples that were taken for the writer `instance` and have not reached it: in queues, in
	 * components before it, and unread in the kernel (ANDIRON_LEDGER_UNREAD). The writer's own
	 * levels are not among them. *ret_dropped: samples dropped in this run on the way to the
	 * writer or by it, as of the same moment. 0 and 0 for an instance that is no writer. [any],
	 * O(components). */
	uint64_t (*upstream)(void *self, uint64_t instance, uint64_t *ret_dropped);

	/* Has the configuration read again, as SIGHUP does, and calls fn on the strand of
	 * `instance` with the result: 0, or a negative errno (the log says why) when the old one
	 * goes on; -EINPROGRESS: until values are there that the new one waits for. fn is not
	 * called if the instance is destroyed before. 0, or -EBUSY: it is being changed already;
	 * -EOPNOTSUPP: there is nobody here who reads one; -EINVAL; -ENOMEM; then fn is not called.
	 * Absent in shorter tables. [loop] */
	int32_t (*reload)(void *self, uint64_t instance, andiron_offer_fn fn, void *arg);

	/* One component as JSON: the fields of the list, and with what arguments it runs (without
	 * secrets) and what it exports, as Alloy's /api/v0/web/components/ID has them. 0 and a
	 * text, or -ENOENT or -ENOMEM and none. Absent in shorter tables. [loop], O(components +
	 * what it exports) */
	int32_t (*component)(void *self, const struct andiron_str *id, andiron_text_fn fn,
			     void *arg);
};

#ifdef __cplusplus
}
#endif

#endif

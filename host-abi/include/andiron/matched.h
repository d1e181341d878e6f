/* SPDX-License-Identifier: Apache-2.0 */
/*
 * andiron.matched/1: which processes each target of a component stands for, as
 * the component sees them at work. For people who look (GET /targets at the status
 * socket), not for the flow of samples: the component works it out when it is asked.
 *
 * The host asks a component's `extension` (component.h) for this id; NULL says
 * that it has no processes.
 */
#ifndef ANDIRON_MATCHED_H
#define ANDIRON_MATCHED_H

#include <andiron/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ANDIRON_MATCHED_ID "andiron.matched/1"

struct andiron_matched_process {
	uint32_t pid;
	uint32_t reserved;
	struct andiron_str name;
};

/* A target, its labels sorted by key as they came in: those that the component looks at. `why` is for people: why
 * there is no process, and empty where there is one. Borrowed for the call. Frozen. */
struct andiron_matched_target {
	const struct andiron_kv *labels;
	uint64_t n_labels;
	const struct andiron_matched_process *processes;
	uint64_t n_processes;
	struct andiron_str why;
};

struct andiron_matched_sink {
	uint32_t size;
	uint32_t reserved;
	void *self;
	void (*add)(void *self, const struct andiron_matched_target *target);
};

struct andiron_matched {
	uint32_t size;
	uint32_t reserved;

	/* Adds each target as things are now, in their order. 0, -EBUSY while it
	 * cannot look (ask again), or -ENOMEM (what was added by then stays). `self` is the
	 * component's own. [loop] [serial], O(targets + processes). */
	int32_t (*each)(void *self, const struct andiron_matched_sink *sink);
};

#ifdef __cplusplus
}
#endif

#endif

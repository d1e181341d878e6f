/* SPDX-License-Identifier: Apache-2.0 */
/* andiron.target-processes/1: the processes that each target of a component selects now. For people
 * who look (GET /targets on the status socket), not for the flow of samples: the component computes
 * the answer when it is asked.
 *
 * The host asks each component for it whose `offers` (component.h) has this id. */
#ifndef ANDIRON_TARGET_PROCESSES_H
#define ANDIRON_TARGET_PROCESSES_H

#include <andiron/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ANDIRON_TARGET_PROCESSES_ID "andiron.target-processes/1"

/* `runtime`: what language runtimes it has, and their versions, for people ("CPython 3.11.2"); or
 * empty. Frozen. */
struct andiron_target_process {
	uint32_t pid;
	uint32_t reserved;
	struct andiron_str name;
	struct andiron_str runtime;
};

/* A target with the labels that select its processes, sorted by key. `why` tells people why no
 * process was found; it is empty where one was. Borrowed for the call. Frozen. */
struct andiron_target_processes_row {
	const struct andiron_kv *labels;
	uint64_t n_labels;
	const struct andiron_target_process *processes;
	uint64_t n_processes;
	struct andiron_str why;
};

struct andiron_target_processes_sink {
	uint32_t size;
	uint32_t reserved;
	void *self;
	void (*add)(void *self, const struct andiron_target_processes_row *row);
};

struct andiron_target_processes {
	uint32_t size;
	uint32_t reserved;

	/* Adds one row per target, in the targets' order. A component that takes what belongs to no
	 * target, too, adds one more row for that, the last, with the labels of its profiles. 0;
	 * -EBUSY while the component cannot answer (ask again); -ENOMEM (rows added so far stay).
	 * `self` is the component's own. [loop] [serial], O(targets + processes). */
	int32_t (*each)(void *self, const struct andiron_target_processes_sink *sink);
};

#ifdef __cplusplus
}
#endif

#endif

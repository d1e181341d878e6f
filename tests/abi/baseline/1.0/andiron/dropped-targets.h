/* SPDX-License-Identifier: Apache-2.0 */
/* andiron.dropped-targets/1: which of the given targets a component does not forward, and which
 * rule drops each. For people who look (`andiron targets`), not for the flow of targets: the host
 * shows the component its own input again, and the component keeps nothing for it.
 *
 * The host asks each component for it whose `offers` (component.h) has this id, whether or not the
 * component is a SERVICE. */
#ifndef ANDIRON_DROPPED_TARGETS_H
#define ANDIRON_DROPPED_TARGETS_H

#include <andiron/target.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ANDIRON_DROPPED_TARGETS_ID "andiron.dropped-targets/1"

/* A target, its labels sorted by key as they came in. `rule` numbers the block that dropped it
 * among the blocks of its kind, from 1; file and line say where that block stands. They are 0 and
 * NULL if no block did. `reason` is for people and may be empty where the rule is enough. Borrowed
 * for the call. Frozen. */
struct andiron_dropped_target {
	const struct andiron_kv *labels;
	uint64_t n_labels;
	struct andiron_str reason;
	const char *file;
	uint32_t line;
	uint32_t rule;
};

struct andiron_dropped_targets_sink {
	uint32_t size;
	uint32_t reserved;
	void *self;
	void (*add)(void *self, const struct andiron_dropped_target *target);
};

struct andiron_dropped_targets {
	uint32_t size;
	uint32_t reserved;

	/* Adds each row of a SNAPSHOT that the component would drop now, in the order of rows. 0 or
	 * -ENOMEM (rows added so far stay). `self` is the component's own. [loop] [serial], O(rows
	 * * rules). */
	int32_t (*each)(void *self, const struct andiron_targets *targets,
			const struct andiron_dropped_targets_sink *sink);
};

#ifdef __cplusplus
}
#endif

#endif

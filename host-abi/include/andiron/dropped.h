/* SPDX-License-Identifier: Apache-2.0 */
/*
 * andiron.dropped/2: which of some targets a component does not pass on, and
 * what decides so. For people who look (`andiron targets`), not for the flow
 * of targets: the host shows what it gave to the component, the component works it
 * out then, and keeps nothing for it.
 *
 * The host asks a component's `extension` (component.h) for this id, whether
 * or not the component is a service; NULL says that it drops nothing, or
 * cannot tell.
 */
#ifndef ANDIRON_DROPPED_H
#define ANDIRON_DROPPED_H

#include <andiron/target.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ANDIRON_DROPPED_ID "andiron.dropped/2"

/*
 * A target, its labels sorted by key as they came in. `rule` is the place of
 * the block that dropped it among its like, from 1, and file and line are where
 * that stands; 0 and NULL where it was no block. `reason` is for people, and may
 * be empty where the rule says it all. Borrowed for the call. Frozen.
 */
struct andiron_dropped_target {
	const struct andiron_kv *labels;
	uint64_t n_labels;
	struct andiron_str reason;
	const char *file;
	uint32_t line;
	uint32_t rule;
};

struct andiron_dropped_sink {
	uint32_t size;
	uint32_t reserved;
	void *self;
	void (*add)(void *self, const struct andiron_dropped_target *target);
};

struct andiron_dropped {
	uint32_t size;
	uint32_t reserved;

	/* Adds each row of a SNAPSHOT that is dropped as things are now, in the order
	 * of rows. 0 or -ENOMEM (what was added by then stays). `self` is the
	 * component's own. [loop] [serial], O(rows · what decides). */
	int32_t (*each)(void *self, const struct andiron_targets *targets,
			const struct andiron_dropped_sink *sink);
};

#ifdef __cplusplus
}
#endif

#endif

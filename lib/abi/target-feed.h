/* SPDX-License-Identifier: Apache-2.0 */
/* How far a consumer has followed each of its producers: whether an update continues what it has,
 * which every consumer must ask before it looks at a row. */
#pragma once

#include "base/vec.h"

#include <andiron/target.h>

struct target_feed {
	uint64_t producer;
	uint64_t generation; /* of the last update */
	bool waiting;        /* for the next SNAPSHOT */
};

struct target_feeds {
	VEC(struct target_feed) list;
};

static inline void target_feeds_free(struct target_feeds *feeds)
{
	vec_free(&feeds->list);
}

/* Whether every index of the update lies within it. O(rows + labels) */
bool target_update_sound(const struct andiron_targets *update);

/* Checks an update against the feed of its producer: 0 and the feed, which waits until
 * target_feed_took says that the rows were applied; -EINVAL for an update that breaks target.h,
 * -ENOMEM, -EAGAIN when a generation is missing. *ret is borrowed until the next call. */
int target_feeds_take(struct target_feeds *feeds, const struct andiron_targets *update,
		      struct target_feed **ret);

static inline void target_feed_took(struct target_feed *feed, const struct andiron_targets *update)
{
	feed->generation = update->generation;
	feed->waiting = false;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Producers, as their consumer follows them. Contract in target-feed.h. */
#include "abi/target-feed.h"

#include <errno.h>

bool target_update_sound(const struct andiron_targets *u)
{
	if (!ANDIRON_KNOWS(u, andiron_targets, release) || u->n_added > u->n_rows)
		return false;
	for (uint64_t i = 0; i < u->n_rows; i++) {
		const struct andiron_target *t = &u->rows[i];

		if (t->label_start > u->n_labels || t->n_labels > u->n_labels - t->label_start)
			return false;
	}
	for (uint64_t i = 0; i < u->n_labels; i++)
		if (u->labels[i].name >= u->n_strings || u->labels[i].value >= u->n_strings)
			return false;
	return true;
}

static struct target_feed *feed_of(struct target_feeds *feeds, uint64_t producer)
{
	vec_each (&feeds->list, f)
		if (f->producer == producer)
			return f;
	if (!vec_push(&feeds->list, ((struct target_feed){.producer = producer, .waiting = true})))
		return NULL;
	return &feeds->list.p[feeds->list.n - 1];
}

int target_feeds_take(struct target_feeds *feeds, const struct andiron_targets *update,
		      struct target_feed **ret)
{
	struct target_feed *feed;

	if (!target_update_sound(update))
		return -EINVAL;
	feed = feed_of(feeds, update->producer);
	if (!feed)
		return -ENOMEM;
	if (!(update->flags & ANDIRON_TARGETS_SNAPSHOT) &&
	    (feed->waiting || update->generation != feed->generation + 1)) {
		feed->waiting = true;
		return -EAGAIN;
	}
	feed->waiting = true;
	*ret = feed;
	return 0;
}

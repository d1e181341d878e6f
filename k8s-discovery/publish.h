/* SPDX-License-Identifier: Apache-2.0 */
/* Turns changed objects into updates of targets. Targets are not kept: they are made when their
 * object has changed, and freed with the update. A target's row id is its object's slot and its
 * position among the object's targets, so an object changes only its own rows.
 *
 * An update holds at most PUBLISH_ROWS changed rows. So the first list of a large cluster takes a
 * hundred short turns of the loop, not a long one. */
#pragma once

#include "k8s-discovery/roles/role.h"

#include <andiron/target.h>

#define PUBLISH_ROWS 1024

struct publisher {
	uint64_t producer;
	uint64_t generation; /* of the last update; 0: none yet */
	struct store *store;
	const struct role *role;
	struct role_options options;
	struct label_rows rows;
	uint64_t targets; /* published */
	bool rebuild;     /* role or options have changed: all is to be made anew */
};

void publisher_fini(struct publisher *p);

/* Sets how targets are made, and makes all of them anew. */
void publisher_use(struct publisher *p, const struct role *role,
		   const struct role_options *options);

/* Publishes everything again, unchanged. */
void publisher_again(struct publisher *p);

/* The next update with one reference; the first one is a SNAPSHOT, and is made even if it is empty.
 * *ret is NULL if nothing has changed; *ret_more tells whether there is more to publish. 0 or
 * -ENOMEM, and then nothing is lost. */
int publisher_next(struct publisher *p, const struct andiron_targets **ret, bool *ret_more);

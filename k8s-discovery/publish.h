/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From changed objects to updates of targets. Nothing is kept of a target but
 * its number: an object's targets are made when it has changed, put into an
 * update, and forgotten. A target's row id is its object's slot and its place
 * among the object's targets, so an object that changes changes its own rows.
 *
 * An update holds at most PUBLISH_ROWS changed rows, so that a first list of a
 * large cluster is a hundred short turns of the loop and not one long one.
 */
#ifndef K8S_PUBLISH_H
#define K8S_PUBLISH_H

#include "k8s-discovery/roles/role.h"

#include <andiron/target.h>

#define PUBLISH_ROWS 1024

struct publisher {
	uint64_t producer;
	uint64_t generation; /* of the last update; 0: none yet */
	struct store *store;
	const struct role *role;
	struct role_options options;
	struct rows rows;
	uint64_t targets; /* published */
	bool rebuild;     /* role or options have changed: all is to be made anew */
};

void publisher_fini(struct publisher *p);

/* What the next targets are made by. All that is published is made anew. */
void publisher_use(struct publisher *p, const struct role *role,
		   const struct role_options *options);

/* All that is published is to be published again, as it is. */
void publisher_again(struct publisher *p);

/*
 * The next update with one reference; the first one is a SNAPSHOT, and is made
 * even if it is empty. *ret is NULL if nothing has changed; *ret_more tells
 * whether there is more to publish. 0 or -ENOMEM, and then nothing is lost.
 */
int publisher_next(struct publisher *p, const struct andiron_targets **ret, bool *ret_more);

#endif

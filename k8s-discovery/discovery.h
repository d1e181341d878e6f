/* SPDX-License-Identifier: Apache-2.0 */
/* discovery.kubernetes without the ABI's verbs: credentials and selections become watches, watches
 * fill one store, changes of the store become targets.
 *
 * The first change after a pause is published at once. Later ones are gathered for 5 ms, or for 100
 * ms after an update of hundreds of targets, so that a rollout makes a few updates. Nothing is
 * published before the first lists are complete. */
#pragma once

#include "abi/log.h"
#include "abi/value.h"
#include "k8s-discovery/api/watch.h"

struct discovery;

/* Reads arguments (with the in-cluster service account where no api_server is given). -EINVAL,
 * -ENOENT with a text, -ENOMEM. Without side effects. */
int discovery_new(const struct abi_context *context, const struct andiron_value *args,
		  struct discovery **ret, struct error *err);
/* 0 or -ENOMEM. Without an API server to ask it is unhealthy until an update. */
int discovery_start(struct discovery *d);
void discovery_stop(struct discovery *d);
void discovery_free(struct discovery *d);

/* New arguments: the watches begin again with them; targets stay until the new lists are complete.
 * On failure the old ones go on. */
int discovery_update(struct discovery *d, const struct andiron_value *args, struct error *err);

/* All targets that are published are published again, soon. */
void discovery_resend(struct discovery *d);

struct discovery_counts {
	struct watch_counts kinds[N_KINDS];
	size_t objects[N_KINDS]; /* that are known */
	unsigned int watched;    /* bits of the kinds that are */
	uint64_t targets, bytes, annotation_bytes, not_utf8, cut;
};
struct discovery_counts discovery_counts(const struct discovery *d);

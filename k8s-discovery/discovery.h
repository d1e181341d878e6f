/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discovery.kubernetes without the ABI's verbs: credentials and namespaces to
 * watches, watches to one list of targets.
 *
 * Changes are gathered for 100 ms before they are published, so that a rollout
 * is some updates and not a thousand; nothing is published before the first
 * lists are complete.
 */
#ifndef K8S_DISCOVERY_H
#define K8S_DISCOVERY_H

#include "abi/log.h"
#include "abi/value.h"

struct discovery;

/* Reads arguments (with the in-cluster service account where no api_server is
 * given). -EINVAL, -ENOENT with a text, -ENOMEM. Without side effects. */
int discovery_new(const struct abi_context *context, const struct andiron_value *args,
		  struct discovery **ret, struct error *err);
/* 0 or -ENOMEM. Without an API server to ask it is unhealthy until an update. */
int discovery_start(struct discovery *d);
void discovery_stop(struct discovery *d);
void discovery_free(struct discovery *d);

/* New arguments: the watches begin again with them; targets stay until the new
 * lists are complete. On failure the old ones go on. */
int discovery_update(struct discovery *d, const struct andiron_value *args, struct error *err);

struct discovery_counts {
	uint64_t lists, watches, events, failures, pods;
};
struct discovery_counts discovery_counts(const struct discovery *d);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* discovery.kubernetes: credentials and selections become watches, watches fill one store, changes
 * of the store become targets.
 *
 * The first change after a pause is published at once. Later ones are gathered for 5 ms, or for 100
 * ms after an update of hundreds of targets, so that a rollout makes a few updates. Nothing is
 * published before the first lists are complete. */
#pragma once

#include "abi/log.h"
#include "abi/value.h"
#include "k8s-discovery/api/watch.h"

struct discovery;

/* Verbs of a component (andiron/component.h), each with the discovery as `self`. */

/* Reads arguments (with the in-cluster service account where no api_server is given). */
int32_t discovery_create(const struct andiron_host *host, uint64_t instance,
			 const struct andiron_value *args, void **ret_self,
			 struct andiron_error *ret_err);
/* 0, -ENOMEM, or what client_loop_start says. Without an API server to ask it is unhealthy until an
 * update. */
int32_t discovery_start(void *self, struct andiron_error *err);
/* The watches begin again with the new arguments; targets stay until the new lists are complete. */
int32_t discovery_update(void *self, const struct andiron_value *args,
			 struct andiron_error *ret_err);
void discovery_stop(void *self);
void discovery_free(void *self);
/* All targets that are published are published again, soon. */
void discovery_resend(void *self, const char *export_name);

struct discovery_counts {
	struct watch_counts kinds[N_KINDS];
	size_t objects[N_KINDS]; /* that are known */
	unsigned int watched;    /* bits of the kinds that are */
	uint64_t targets, bytes, annotation_bytes, not_utf8, cut;
};
struct client_loop;
/* NULL: not started, or stopped. */
const struct client_loop *discovery_loop(const struct discovery *d);

struct discovery_counts discovery_counts(const struct discovery *d);

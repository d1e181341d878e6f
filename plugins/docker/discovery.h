/* SPDX-License-Identifier: Apache-2.0 */
/* discovery.docker: the engine's containers as targets.
 *
 * All containers are listed once the stream of events has begun, so that no change falls between
 * the two. An event has only its own container asked for again. When the stream ends it is begun
 * again, and all are listed again. What an engine told last stays while it does not answer.
 *
 * One list is asked for at a time, and read on a worker. Changes are gathered for 5 ms. */
#pragma once

#include "abi/log.h"
#include "abi/value.h"

struct client_loop;
struct discovery;

/* Verbs of a component (andiron/component.h), each with the discovery as `self`. */
int32_t discovery_create(const struct andiron_host *host, uint64_t instance,
			 const struct andiron_value *args, void **ret_self,
			 struct andiron_error *ret_err);
int32_t discovery_start(void *self, struct andiron_error *err);
void discovery_stop(void *self);
void discovery_free(void *self);

struct discovery_counts {
	uint64_t containers, targets; /* that are known, published */
	uint64_t events, lists, updates, failures, received_bytes;
};
/* NULL while it does not run. */
const struct client_loop *discovery_loop(const struct discovery *d);
struct discovery_counts discovery_counts(const struct discovery *d);

/* SPDX-License-Identifier: Apache-2.0 */
/* discovery.dockerswarm: services, tasks or nodes of a swarm as targets, as a manager lists them.
 *
 * A round asks for all lists that the role wants, one after the other, and a worker makes targets
 * of them; a round that fails changes nothing. Events say that something has changed, not what a
 * target is, so each begins a round. Where events come without end, rounds take a twentieth of the
 * time, or one begins each refresh_interval: a manager has other things to do.
 *
 * No event tells of a task. After an event the rounds follow each other at first, then twice as far
 * apart each time, up to refresh_interval. */
#pragma once

#include "abi/log.h"
#include "abi/value.h"

struct client_loop;
struct swarm;

/* Verbs of a component (andiron/component.h), each with the swarm as `self`. */
int32_t swarm_create(const struct andiron_host *host, uint64_t instance,
		     const struct andiron_value *args, void **ret_self,
		     struct andiron_error *ret_err);
int32_t swarm_start(void *self, struct andiron_error *err);
void swarm_stop(void *self);
void swarm_free(void *self);

struct swarm_counts {
	uint64_t objects, targets; /* that are known, published */
	uint64_t events, rounds, updates, failures, received_bytes;
};
/* NULL while it does not run. */
const struct client_loop *swarm_loop(const struct swarm *s);
struct swarm_counts swarm_counts(const struct swarm *s);

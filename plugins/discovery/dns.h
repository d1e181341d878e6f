/* SPDX-License-Identifier: Apache-2.0 */
/* discovery.dns: the records of names, asked for at an interval by the system's resolver
 * (/etc/resolv.conf), search list included. A name that does not exist has no targets; one of which
 * no server says anything keeps those that it had.
 *
 * The resolver blocks for as long as servers are silent. So the names are looked up on a thread of
 * their own, which is left to end by itself when the component goes. A process apart asks the
 * servers (resolver.h). */
#pragma once

#include "abi/log.h"
#include "discovery/dns-answer.h"

#include <andiron/value.h>

/* Verbs of a component (andiron/component.h). */
int32_t dns_create(const struct andiron_host *host, uint64_t instance,
		   const struct andiron_value *args, void **ret_self,
		   struct andiron_error *ret_err);
int32_t dns_start(void *self, struct andiron_error *err);
void dns_stop(void *self);
void dns_free(void *self);

struct dns_counts {
	uint64_t targets, lookups, failures;
	uint64_t starts, restarts; /* of what asks servers */
};
struct dns_counts dns_counts(const void *self);

/* "A", "srv": the type; -1 for another word. */
int dns_type_of(struct str word);

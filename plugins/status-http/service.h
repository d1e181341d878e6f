/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's state for whoever scrapes and probes:
 *
 *     /metrics     Prometheus text: everything that the host and its components count
 *     /-/ready     200, or 503 and why: one of those that matter is not live, or is unhealthy
 *     /-/healthy   200, or 500 and why: a component has given up, which a restart may mend.
 *                  An outage of a server is none: a restart does not mend it.
 *
 * All of it runs on the loop: that it answers says that the loop turns. */
#pragma once

#include "abi/log.h"
#include "status-http/server.h"

#include <andiron/status.h>

struct service {
	struct abi_context context;
	struct andiron_extension status; /* andiron.status/1 */
	uint32_t matters;                /* flags of components without which it is not ready */
	char *address;
	uint16_t port;
	bool live; /* started, and not stopped */
	/* NULL: not live, or an update could not have back what it gave up. */
	struct server *server;
	uint64_t watch, timer;
};

/* Listens. 0 or a negative errno and a text. [serial] */
int service_start(struct service *self, struct error *err);
/* Listens elsewhere from now on; who is connected to the old place is cut off. All or nothing, and
 * the same place stays open as it is. Nobody is without an answer in between, unless the new place
 * is the same port of an address that overlaps the old one. 0, or a negative errno and a text.
 * [serial] */
int service_update(struct service *self, const char *address, uint16_t port, struct error *err);
/* Idempotent. */
void service_stop(void *self);

/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's state for whoever scrapes and probes:
 *
 *     /            the page for people (page.h)
 *     /metrics     Prometheus text: everything that the host and its components count
 *     /-/ready     200, or 503 and why: one of those that matter is not live, or is unhealthy
 *     /-/healthy   200, or 500 and why: a component has given up, which a restart may mend.
 *                  An outage of a server is none: a restart does not mend it.
 *     /-/reload    the configuration is read again: 200, or 400: it was refused, or 503: ask again
 *     /targets     JSON: targets, their processes, and why they have none; or 503: ask again
 *     /flame       the flame graph of ?last=60s, against what was ?against=5m before
 *     /profile     the same time as pprof
 *     /api/v0/web/components   JSON: the components, as Alloy lists them; below it, by id, one of
 *                  them with its arguments and exports
 *
 * All of it runs on the loop: that it answers says that the loop turns. */
#pragma once

#include "http-server/listener.h"
#include "status-http/auth.h"
#include "status-http/live.h"

#include <andiron/status.h>

struct service {
	struct listener listener;
	struct andiron_extension status; /* andiron.status/1 */
	uint32_t matters;                /* flags of components without which it is not ready */
	struct auth auth;                /* who may ask; the caller's to set */
	bool reload;                     /* whether /-/reload does anything */
	bool reloading;                  /* one was asked for, and is not over */
	struct recent kept;              /* what came to the receiver; the caller's to fill */
	struct look *looking;            /* a worker draws it; NULL: none does */
	struct server_request *reloader; /* who waits for that; NULL: nobody any more */
};

/* Where it listens, within limits that serve small pages: 32 connections of 8 KiB, 10 seconds for
 * each step, no bodies. */
struct server_options service_options(const char *address, uint16_t port);

/* Prepares it, to be started by its listener; `status` and `matters` are the caller's to set. 0 or
 * -ENOMEM. */
int service_init(struct service *self, const struct abi_context *context,
		 const struct server_options *options);

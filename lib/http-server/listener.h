/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP server (server.h) on the host's loop, at a place that can change while it serves. Used
 * under the component's strand. */
#pragma once

#include "abi/log.h"
#include "http-server/server.h"

struct listener {
	struct abi_context context;
	struct server_events events;
	struct server_options options; /* copies of its own */
	bool live;                     /* started, and not stopped */
	/* NULL: not live, or an update could not have back what it gave up. */
	struct server *server;
	uint64_t watch, timer;
};

/* Keeps a copy of the options. 0 or -ENOMEM. */
int listener_init(struct listener *l, const struct abi_context *context,
		  const struct server_events *events, const struct server_options *options);
/* It has been stopped, or has never started. */
void listener_fini(struct listener *l);

/* Listens. 0 or a negative errno and a text. */
int listener_start(struct listener *l, struct error *err);
/* Listens by other options from now on; who is connected by the old ones is cut off. All or
 * nothing, and equal options change nothing. Nobody is without an answer in between, unless the new
 * place is the same port of an address that overlaps the old one. 0, or a negative errno and a
 * text. */
int listener_update(struct listener *l, const struct server_options *options, struct error *err);
/* Idempotent. */
void listener_stop(struct listener *l);

/* A request was answered from outside of the server's calls. */
void listener_turn(struct listener *l);

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
	struct server *server;         /* NULL: not live, or without an address */
	uint64_t watch, timer;
	uint64_t refused;   /* connections, by servers that are gone */
	uint16_t free_port; /* the last that port 0 was, or 0 */
};

/* Keeps a copy of the options. 0 or -ENOMEM. */
int listener_init(struct listener *l, const struct abi_context *context,
		  const struct server_events *events, const struct server_options *options);
/* It has been stopped, or has never started. */
void listener_fini(struct listener *l);

/* Listens. 0 or a negative errno and a text. */
int listener_start(struct listener *l, struct error *err);
/* Listens by other options from now on; who is connected by the old ones is cut off. All or
 * nothing: where it fails, nobody who is connected has noticed. Equal options change nothing. An
 * address and port that stay are listened at all the time. Port 0 is the port that it was before,
 * where that is free. A reload of which another component refuses its part is a second update,
 * back to the old options, and cuts off whoever is connected once more. 0, or a negative errno and
 * a text. */
int listener_update(struct listener *l, const struct server_options *options, struct error *err);

struct listener_change {
	struct listener *listener;
	const struct server_options *options;
	/* Used by listeners_update. */
	struct server_options copy;
	struct server *server;
	uint64_t watch;
	bool due;
	bool given; /* the old socket is a new server's */
	bool aside; /* it was closed, to make way */
	bool own;   /* the new server's socket is its own */
};

/* The same of several listeners at once, which may take over each other's places. */
int listeners_update(struct listener_change *changes, size_t n, struct error *err);
/* Idempotent. */
void listener_stop(struct listener *l);

/* server_refused, since the beginning. */
uint64_t listener_refused(const struct listener *l);

/* A request was answered from outside of the server's calls. */
void listener_turn(struct listener *l);

/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's stream of events: JSON objects, one a line. A line of any piece of a stream is told
 * once it is whole.
 *
 * Source: the Docker Engine API, GET /events. */
#pragma once

#include "base/buf.h"

/* One event. Borrowed for the call; STR_NULL for what it does not say. */
struct event {
	struct str type;      /* "container", "network" */
	struct str action;    /* "start", "die", "connect" */
	struct str id;        /* of what the type says */
	struct str container; /* for the type network: that is connected to it */
};

struct events {
	struct buf line;
};

void events_fini(struct events *e);
/* Forgets what has come of a line. */
void events_begin(struct events *e);
/* Tells the events that end in a piece. False for what is no stream of events, or when memory is
 * short: it has to be begun again. */
bool events_feed(struct events *e, struct str piece,
		 void (*tell)(void *context, const struct event *event), void *context);

/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's stream of events, begun again whenever it ends: after 250 ms and up to 10 s, or
 * after a minute where the engine refuses it (a proxy may let no events through). */
#pragma once

#include "docker/engine.h"
#include "docker/events.h"

/* What becomes of it; each with the context. */
struct stream_calls {
	/* Events are told from here on; what was before must be asked for. */
	void (*begun)(void *context);
	void (*event)(void *context, const struct event *event);
	/* It has ended, or could not begin; `trouble` has the reason. */
	void (*ended)(void *context);
};

struct stream {
	const struct engine *engine; /* borrowed, as all of these are */
	const struct stream_calls *calls;
	void *context;
	const char *filters; /* JSON: which events */
	struct events events;
	uint64_t request, timer;
	int64_t begun_ns, wait_ms;
	bool following; /* events come */
	bool answered;  /* at the last attempt the engine said something */
	bool stopped;
	uint64_t n_events, n_failures, n_bytes;
	char trouble[ENGINE_TROUBLE]; /* why no events come; "" while they do, or at first */
};

/* Begins it. `ended` may be called from within. */
void stream_start(struct stream *s);
/* No call comes after it; the request goes with the engine. */
void stream_stop(struct stream *s);
void stream_fini(struct stream *s);

/* SPDX-License-Identifier: Apache-2.0 */
/* One Docker engine, asked: the way to it, what a failure means in words, and timers. For the
 * components of this plugin, under their strands. */
#pragma once

#include "abi/log.h"
#include "client/loop.h"
#include "docker/settings.h"

#define ENGINE_TROUBLE 1280 /* bytes of a text about what went wrong */

struct engine {
	const struct abi_context *context; /* borrowed, as the settings are */
	const struct settings *settings;
	struct client_loop *loop;
};

/* For `start`: 0, or a negative errno, of which the host is told. An engine in the network is asked
 * by a sender (client/loop.h), one at a socket by this process. */
int32_t engine_start(struct engine *e, const struct abi_context *context,
		     const struct settings *settings, struct andiron_error *ret_err);
/* Ends all requests; their `done` is not called. Again is no error, nor is one that never began. */
void engine_fini(struct engine *e);

/* Sends a GET, whose other members the caller has set, and frees the URL. 0, or a negative errno
 * and a text in `trouble`. */
int engine_ask(const struct engine *e, struct buf *url, struct http_request *request,
	       uint64_t *ret_request, char trouble[ENGINE_TROUBLE]);
/* A request for `what` ("its containers") that did not end well, in words. */
void engine_describe(const struct engine *e, const char *what, const struct http_response *response,
		     char trouble[ENGINE_TROUBLE]);

/* Sets a timer that does not run; its call sets *timer to 0. One that cannot be set is called at
 * once. */
void engine_timer(const struct engine *e, uint64_t *timer, int64_t after_ns, andiron_call_fn fn,
		  void *arg);
void engine_timer_cancel(const struct engine *e, uint64_t *timer);

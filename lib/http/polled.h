/* SPDX-License-Identifier: Apache-2.0 */
/* A loop over poll(2) for programs that wait for nothing but their requests. */
#pragma once

#include "base/vec.h"
#include "http/http.h"

#include <poll.h>

struct http_polled {
	VEC(struct pollfd) fds, ready; /* ready: scratch of a turn */
	int64_t deadline_ns;           /* CLOCK_MONOTONIC; INT64_MAX: the timer is off */
	struct http_client *client;
};

/* An empty loop, and what a client needs of it, to be made by the caller and put in its place. 0 or
 * -ENOMEM. */
int http_polled_hooks(struct http_polled *loop, struct http_loop *ret);

/* Makes the client too. The struct must not move until http_polled_fini. 0, -ENOMEM, or what
 * libcurl refuses, with a text. */
int http_polled_init(struct http_polled *loop, struct error *err);

/* Ends all requests; their `done` is not called. */
void http_polled_fini(struct http_polled *loop);

/* Waits once: for what is watched, the timer, `more` (NULL: nothing more) and until then. */
void http_polled_turn(struct http_polled *loop, struct pollfd *more, int64_t until_ns);

/* Turns until *flag is set or the time is over; false in the latter case. */
bool http_polled_until(struct http_polled *loop, const bool *flag, int64_t timeout_ms);

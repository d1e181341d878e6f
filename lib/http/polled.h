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

/* Makes the client too. The struct must not move until http_polled_fini. 0, -ENOMEM, or what
 * libcurl refuses, with a text. */
int http_polled_init(struct http_polled *loop, struct error *err);

/* Ends all requests; their `done` is not called. */
void http_polled_fini(struct http_polled *loop);

/* Turns until *flag is set or the time is over; false in the latter case. */
bool http_polled_until(struct http_polled *loop, const bool *flag, int64_t timeout_ms);

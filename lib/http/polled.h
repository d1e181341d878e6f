/* SPDX-License-Identifier: Apache-2.0 */
/* A loop over epoll(7) for programs that wait for nothing but their requests. */
#pragma once

#include "base/vec.h"
#include "http/http.h"

struct http_polled {
	int epoll;
	int more; /* -1: none */
	VEC(uint8_t) watched; /* by descriptor: HTTP_IN, HTTP_OUT; 0: it is not */
	size_t n_watched; /* for tests */
	int64_t deadline_ns; /* CLOCK_MONOTONIC; INT64_MAX: the timer is off */
	struct http_client *client;
};

/* An empty loop, and what a client needs of it, to be made by the caller and put in its place. 0 or
 * a negative errno. */
int http_polled_hooks(struct http_polled *loop, struct http_loop *ret);

/* Makes the client too. The struct must not move until http_polled_fini. 0, or what the above or
 * libcurl refuses, with a text. */
int http_polled_init(struct http_polled *loop, struct error *err);

/* Ends all requests; their `done` is not called. */
void http_polled_fini(struct http_polled *loop);

/* From now on a turn ends when something can be read from `fd`, too, or its other end has closed,
 * which is the caller's. Once. 0 or a negative errno. */
int http_polled_more(struct http_polled *loop, int fd);

/* Waits once: for what is watched, the timer, and until then. O(what has happened). */
void http_polled_turn(struct http_polled *loop, int64_t until_ns);

/* Turns until *flag is set or the time is over; false in the latter case. */
bool http_polled_until(struct http_polled *loop, const bool *flag, int64_t timeout_ms);

/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: a poll loop that drives an http_client, and a server on loopback whose every
 * connection is served by a function of the test's, in a thread of its own. */
#pragma once

#include "http/polled.h"

#include <pthread.h>

struct test_loop {
	struct http_polled poll;
	struct http_client *client;
};

/* Makes the client too; ends the test on failure. */
void test_loop_init(struct test_loop *loop);
void test_loop_fini(struct test_loop *loop);

/* Turns until *flag is set or the time is over; false in the latter case. */
bool test_loop_until(struct test_loop *loop, const bool *flag, int64_t timeout_ms);

struct test_server;
typedef void (*test_serve_fn)(int fd, void *context);

/* Connections are served one after the other. `serve` need not close fd. */
struct test_server *test_server_new(test_serve_fn serve, void *context);
void test_server_free(struct test_server *server);
uint16_t test_server_port(const struct test_server *server);

/* For serve functions. Reads up to the end of the headers and, where they state a length, the body;
 * what came, NUL-terminated, in a static-size buffer. False when the peer left. */
#define TEST_REQUEST_MAX (256u << 10)
bool test_read_request(int fd, char *out);
/* Sends all, or gives up when the peer has gone. False then. */
bool test_send(int fd, const char *data, size_t n);
bool test_say(int fd, const char *text);

/* A loopback port on which nobody listens. */
uint16_t test_unused_port(void);

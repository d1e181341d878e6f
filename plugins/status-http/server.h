/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP server of a few small pages, on libmicrohttpd, run by whoever has the thread: no thread
 * of its own, never blocks. What strangers may cost is bounded: 32 connections of 8 KiB each, 10
 * seconds without progress, bodies refused unread. */
#pragma once

#include "base/buf.h"
#include "base/error.h"

#include <stdint.h>

#define SERVER_CONNECTIONS 32
#define SERVER_IDLE_S      10

struct server;

struct server_page {
	unsigned int status; /* 200, 404, … */
	const char *type;    /* of the content, a constant */
	struct buf body;     /* freed by the server */
};

/* Makes the page at `path` (without its query) as it is now. What is not set is a 404. */
typedef void (*server_page_fn)(void *context, struct str path, struct server_page *page);

/* Listens at a numeric address, IPv4 or IPv6, and a port, 0: any that is free. 0 or a negative
 * errno and a text. */
int server_new(const char *address, uint16_t port, server_page_fn fn, void *context,
	       struct server **ret, struct error *err);
void server_free(struct server *s);

/* Readable when there is something to do. */
int server_fd(const struct server *s);
/* Does it. In so many ms it wants to be run again whatever the descriptor says; -1: it does not. */
int64_t server_run(struct server *s);
uint16_t server_port(const struct server *s);

/* Whether an address is one that server_new can take, and whether it is this machine's alone. */
bool server_address_ok(const char *address, bool *ret_loopback);

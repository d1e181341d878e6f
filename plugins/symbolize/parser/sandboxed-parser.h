/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parser in a process of its own. Both ends of the socket are here: requests with
 * descriptors go one way, an answer as a file in memory comes back. Each request is answered
 * before the next; whoever asks waits at most APART_WAIT_MS and then kills the process.
 */
#ifndef SYMBOLIZE_PARSER_SANDBOXED_PARSER_H
#define SYMBOLIZE_PARSER_SANDBOXED_PARSER_H

#include "symbolize/symbolizer.h"

#include <andiron/subprocess.h>

#define APART_WAIT_MS 30000

/* Serves until the socket ends: 0; or -EBADMSG and the like. Needs
 * DEMANGLE_STACK_BYTES of stack. */
int apart_serve(int socket);

/* The other end. Started when it is first asked, and again after it has died. */
struct apart {
	const struct andiron_subprocess *service;
	void *self;
	uint64_t instance;
	int socket, pidfd; /* -1: it does not run */
	uint64_t starts;
};

#define APART_NULL ((struct apart){.socket = -1, .pidfd = -1})

/* A port's `ask` (symbolizer.h), with a struct apart. -EPIPE: the process died, or took too long.
 */
int apart_ask(void *self, const struct parser_request *request, struct buf *answer);

/* Ends it and waits for its end. */
void apart_stop(struct apart *a);

#endif

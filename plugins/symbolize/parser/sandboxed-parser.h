/* SPDX-License-Identifier: Apache-2.0 */
/* The parser in a process of its own. Both ends of the socket are here: requests with descriptors
 * go one way, an answer as a file in memory comes back. Each request is answered before the next;
 * whoever asks waits at most SANDBOXED_PARSER_WAIT_MS and then kills the process. */
#pragma once

#include "symbolize/parser/parser.h"

#include <andiron/subprocess.h>

#define SANDBOXED_PARSER_WAIT_MS 30000

/* Serves until the socket ends: 0; or -EBADMSG and the like. Needs DEMANGLE_STACK_BYTES of stack.
 */
int sandboxed_parser_serve(int socket);

/* The other end. Started when it is first asked, and again after it has died. */
struct sandboxed_parser {
	const struct andiron_subprocess *service;
	void *self;
	uint64_t instance;
	int socket, pidfd; /* -1: it does not run */
	uint64_t starts;
};

#define SANDBOXED_PARSER_NULL ((struct sandboxed_parser){.socket = -1, .pidfd = -1})

/* A parser_port's `ask`, with a struct sandboxed_parser. -EPIPE: the process died, or took too
 * long. */
int sandboxed_parser_ask(void *self, const struct parser_request *request, struct buf *answer);

/* Ends it and waits for its end. */
void sandboxed_parser_stop(struct sandboxed_parser *a);

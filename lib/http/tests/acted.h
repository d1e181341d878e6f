/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: senders whose process is good, or follows a script. */
#pragma once

#include "http/sender/sender.h"
#include "http/tests/test-exchange.h"

#include <sys/types.h>

struct acted_process {
	int socket;
	pid_t pid;
};

struct acted {
	void (*script)(int socket); /* NULL: a good one */
	int fault;                  /* of starting it */
	bool stale;
	int64_t stale_ms;
	/* Processes beside the first one, forked before the server's thread is there: a fork may
	 * keep a lock of the allocator's that the thread held. */
	int further;
	struct acted_process forked[3];
	int starts, ends;
	pid_t pid;
	char why[512];
	int64_t after_ms;
};

/* What http_sender_new gives. */
int acted_client(struct acted *a, struct test_loop *loop, struct error *err);
/* An exchange whose client is such a one. */
void acted_begin(struct exchange *x, struct acted *a, test_serve_fn serve, void *context);
/* Sends what the server never answers, and waits until it has left: its id. `flag` is set again by
 * the answer. */
uint64_t acted_hang(struct exchange *x, bool *flag);

/* A `done` that sets the bool in its context. */
void note_done(void *context, const struct http_response *response);

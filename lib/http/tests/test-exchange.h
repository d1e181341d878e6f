/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: a server, a client and one exchange between them at a time. */
#pragma once

#include "http/tests/test-loop.h"

struct outcome {
	bool done;
	int calls, result, status;
	bool sent;
	char error[1024];
	char body[4096];
	size_t n;
	int64_t retry_after_ms, elapsed_ns;
};

struct exchange {
	struct test_server *server;
	struct test_loop loop;
	struct http_config config;
	struct http_request request; /* GET of the server's root, 10 s, 4 KiB */
	char url[64];
	struct outcome outcome;
	uint64_t id;
};

void exchange_init(struct exchange *x, test_serve_fn serve, void *context);
void exchange_fini(struct exchange *x);
/* The second half of exchange_init, for a loop that is there. A loop may fork, so it is made before
 * the server's thread: a thread could hold a lock of the allocator's, which the fork would keep. */
void exchange_serve(struct exchange *x, test_serve_fn serve, void *context);

/* Sends the request and waits for its one call of done. */
void exchange_run(struct exchange *x);

/* One exchange with a server that answers with the given text and closes. */
void exchange_text(struct exchange *x, const char *answer);

/* A done for `struct outcome`. */
void outcome_done(void *context, const struct http_response *response);

/* Serves: the text in context; then waits until the peer goes. */
void serve_text(int fd, void *context);
void serve_hang(int fd, void *context);

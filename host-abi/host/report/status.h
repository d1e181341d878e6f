/* SPDX-License-Identifier: Apache-2.0 */
/* The status socket: a unix socket (mode 0600) that answers `GET /metrics` with Prometheus text,
 * `GET /health` and `GET /targets` with JSON, as HTTP/1.0; 503 to the last when a sampler is at
 * work and cannot look:
 *
 *     curl --unix-socket PATH http://andiron/metrics
 *
 * `POST /-/reload` has the configuration read again, as SIGHUP does, and is answered when that is
 * done: 200; 202 where the new one waits for a value; 400 and why it was refused; 503 where it
 * could not be tried now.
 *
 * Runs on the loop and never blocks it: at most 16 clients, 4 KiB of request and 5 seconds each. */
#pragma once

#include "base/error.h"

struct host;
struct status;

/* Listens at `path`. A socket that is there is replaced if nobody answers at it. 0 or a negative
 * errno with the cause. [loop] */
int status_new(struct host *host, const char *path, struct status **ret, struct error *err);
/* Closes everything and removes the socket if it is still ours. */
void status_free(struct status *s);

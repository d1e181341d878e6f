/* SPDX-License-Identifier: Apache-2.0 */
/* Asking debuginfod servers, one after the other. */
#pragma once

#include "http/polled.h"

struct servers {
	struct http_polled loop;
	struct str urls;    /* as in DEBUGINFOD_URLS; borrowed */
	uint64_t max_bytes; /* of a file; a longer one is not begun where the server says how long
			       it is */
	int64_t stall_ms;   /* nothing arrives that long: the next server */
	int64_t until_ns;   /* CLOCK_MONOTONIC; nothing is asked after it */
};

/* 0, -ENOMEM, or what libcurl refuses, with a text. The struct must not move until servers_fini. */
int servers_init(struct servers *s, struct error *err);
void servers_fini(struct servers *s);

/* Writes what the first server that has it gives for `path` ("/buildid/…") to `fd`, instead of what
 * was there. -ENOENT: every server says that it has no such thing; -EINVAL: there are no servers;
 * -E2BIG: a server has it, and it is too large; -ETIME; else what came of the last server that did
 * not answer, with a text. At most ten redirects, to HTTP and HTTPS only; both TLS and proxies are
 * as the environment says. */
int servers_get(struct servers *s, struct str path, int fd, struct error *err);

/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that speak to servers for a component (start_sender of andiron/subprocess.h), and
 * what each may read. */
#pragma once

#include "abi/log.h"
#include "proc/client-files.h"

#include <andiron/host.h>

struct client_sender {
	struct abi_context context;
	struct andiron_extension service; /* andiron.subprocess/1 */
	struct client_files files;        /* that the last one may read */
	int64_t looked_ns;                /* when they were last looked at; CLOCK_MONOTONIC */
	bool stale;                       /* what was found */
};

/* False where the host starts none: one of others may have no such service, or an older one. */
bool client_sender_init(struct client_sender *s, const struct abi_context *context);
/* What start_sender says. */
int client_sender_start(struct client_sender *s, int *ret_socket, int *ret_pidfd);
/* Whether one that is started now could read what the last cannot: files were replaced. They are
 * looked at once a second at most: it takes some 30 system calls, and is asked for each request. */
bool client_sender_is_stale(struct client_sender *s, int64_t now_ns);

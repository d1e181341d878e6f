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
};

/* False where the host starts none: one of others may have no such service, or an older one. */
bool client_sender_init(struct client_sender *s, const struct abi_context *context);
/* What start_sender says. */
int client_sender_start(struct client_sender *s, int *ret_socket, int *ret_pidfd);
/* Whether one that is started now could read what the last cannot: files were replaced. */
bool client_sender_is_stale(const struct client_sender *s);

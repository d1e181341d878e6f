/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials from a program (exec in a kubeconfig file): it is run when they are needed, before
 * they expire, and when the server has refused them. What it prints is an ExecCredential; it never
 * gets a terminal.
 *
 * Source: Kubernetes, "client-go credential plugins"; the types of client.authentication.k8s.io. */
#pragma once

#include "abi/log.h"
#include "k8s-discovery/api/kubeconfig.h"

struct exec;

struct exec_owner {
	const struct abi_context *host;
	void *context;
	/* There are credentials, in the config that was given to exec_new: for the first time, or
	 * new ones. */
	void (*ready)(void *context);
	/* `text` says why there are none; it tries again by itself. */
	void (*failed)(void *context, const char *text);
};

/* The config outlives it. NULL: out of memory. */
struct exec *exec_new(const struct exec_owner *owner, struct kubeconfig *config);
void exec_start(struct exec *e);
/* Credentials were refused: runs the program anew, unless it does already or did a moment ago. */
void exec_refused(struct exec *e);
/* Ends timers; a program that runs is left to end, and frees what it needs. */
void exec_free(struct exec *e);

/* What a program has printed: the credentials into `http`, whose strings are
 * then in the arena, and when they expire (CLOCK_REALTIME ns, 0: never). 0,
 * -ENOMEM, or -EINVAL with a text. */
int exec_read(struct str output, struct arena *arena, struct http_config *http,
	      int64_t *ret_expires_ns, struct error *err);

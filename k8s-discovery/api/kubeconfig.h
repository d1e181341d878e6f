/* SPDX-License-Identifier: Apache-2.0 */
/* A kubeconfig file: which server its current context means, whom to trust there, and how to prove
 * oneself. Relative paths in it are relative to its own folder. auth-provider (gone from Kubernetes
 * since 1.26) is refused by name.
 *
 * Source: client-go, tools/clientcmd/api/v1 (the fields) and its loader. */
#pragma once

#include "base/arena.h"
#include "base/error.h"
#include "http/http.h"

/* A program that gives out credentials (client.authentication.k8s.io). */
struct kubeconfig_exec {
	const char *command;     /* absolute path */
	const char *const *argv; /* with argv[0], ends with NULL */
	const char *const *env;  /* "NAME=value" beside our own, ends with NULL */
	const char *api_version;
	bool provide_cluster_info;
	struct str
		ca_data; /* the authority as it stands in the file, base64; STR_NULL: as a path */
};

struct kubeconfig {
	struct str server; /* without a slash at the end */
	struct http_config http;
	const struct kubeconfig_exec *exec; /* NULL: http says it all */
};

/* Reads the file at `path`; all is kept in the arena. 0, -ENOMEM, -ENOENT (or what else open says)
 * for a file that cannot be read, -EINVAL for what it says. With a text. Files that it names are
 * not opened. */
int kubeconfig_load(struct arena *arena, const char *path, struct kubeconfig *ret,
		    struct error *err);

/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of discovery.kubernetes as the engine wants them: server, credentials, role, and what
 * to watch. */
#pragma once

#include "abi/value.h"
#include "base/error.h"
#include "base/vec.h"
#include "client/options.h"
#include "k8s-discovery/api/kubeconfig.h"
#include "k8s-discovery/roles/role.h"
#include "k8s-discovery/api/watch.h"

struct settings {
	struct client_config client;
	struct kubeconfig kubeconfig; /* where a file is named: its `http` is the one in use */
	struct arena arena;
	struct api api;
	const struct role *role;
	struct role_options options;
	struct annotations annotations;   /* to keep, where `annotations` is given */
	VEC(struct selection) selections; /* one per watch */
	struct str node;                  /* the node whose pods are watched, STR_NULL: all */
	bool all_nodes;                   /* although the node is known */
};

/* 0, -ENOMEM, or -EINVAL and -ENOENT with a text, the latter also for a kubeconfig file that cannot
 * be read. In the cluster (neither that nor api_server): KUBERNETES_SERVICE_HOST and _PORT, token
 * and CA of the service account, whose folder is `account`. NODE_NAME is the node that we run on.
 */
int settings_init(struct settings *ret, const struct andiron_value *args, const char *account,
		  struct error *err);
void settings_fini(struct settings *s);

/* The same without a role: how the server is reached, and nothing else. */
int settings_init_server(struct settings *ret, const struct andiron_value *args,
			 const char *account, struct error *err);

#define SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

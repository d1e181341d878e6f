/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of options. Contract in options.h. */
#include "k8s-discovery/options.h"

#include "base/clock.h"
#include "client/options.h"
#include "client/polling.h"

static const struct andiron_option namespaces[] = {
	OPTION(STRINGS, "names", NULL, "Namespaces to look into; all where the list is empty."),
	OPTION(BOOL, "own_namespace", "false",
	       "Whether the namespace that this pod runs in is added."),
};
static const struct andiron_options namespaces_table = ANDIRON_OPTIONS(namespaces);

static const char *const roles[] = {"node",          "pod",     "service", "endpoints",
				    "endpointslice", "ingress", NULL};

static const struct andiron_option selectors[] = {
	OPTION(STRING, "role", NULL, "What the selectors apply to.",
	       .flags = ANDIRON_OPTION_REQUIRED, .choices = roles),
	OPTION(STRING, "label", NULL, "Label selector, as kubectl --selector takes it."),
	OPTION(STRING, "field", NULL, "Field selector, as kubectl --field-selector takes it."),
};
static const struct andiron_options selectors_table = ANDIRON_OPTIONS(selectors);

static const struct andiron_option attach[] = {
	OPTION(BOOL, "node", "false",
	       "Whether targets of the roles pod, endpoints and endpointslice carry the labels of "
	       "their node; nodes are watched for it."),
	OPTION(BOOL, "namespace", "false",
	       "Whether targets carry the labels of their namespace; namespaces are watched for "
	       "it."),
};
static const struct andiron_options attach_table = ANDIRON_OPTIONS(attach);

static const char *const scopes[] = {"node", "cluster", NULL};

static const struct andiron_option options[] = {
	OPTION(STRING, "role", NULL, "What to discover.", .flags = ANDIRON_OPTION_REQUIRED,
	       .choices = roles),
	OPTION(STRING, "api_server", NULL,
	       "URL of the API server; that of the cluster we run in where it is absent."),
	OPTION(STRING, "kubeconfig_file", NULL,
	       "kubeconfig file whose current context says how to reach the API server, instead "
	       "of api_server and the HTTP client arguments."),
	OPTION(STRING, "scope", NULL,
	       "Whether pods of this node are watched or those of the whole cluster. Without it, "
	       "those of the node that the environment variable NODE_NAME names, and of the "
	       "cluster where there is none.",
	       .choices = scopes),
	OPTION(BOOL, "ephemeral_containers", "false",
	       "Whether ephemeral containers are targets, too. Targets then carry "
	       "__meta_kubernetes_pod_container_kind: container, init, sidecar or ephemeral."),
	OPTION(BOOL, "pods_without_ip", "false",
	       "Whether pods without an address are targets, without an __address__. Targets then "
	       "carry __meta_kubernetes_pod_container_kind."),
	OPTION(STRINGS, "annotations", NULL,
	       "The annotations that targets carry, by name; all where it is absent. What no rule "
	       "reads costs memory: see andiron_kubernetes_annotation_bytes."),
	OPTION(BLOCK, "namespaces", NULL, "Which namespaces to look into.",
	       .block = &namespaces_table),
	OPTION(BLOCK, "selectors", NULL, "Which objects the API server is asked for.",
	       .flags = ANDIRON_OPTION_REPEATED, .block = &selectors_table),
	OPTION(BLOCK, "attach_metadata", NULL, "What else a target should carry.",
	       .block = &attach_table),
	CLIENT_OPTIONS,
};
const struct andiron_options kubernetes_options = ANDIRON_OPTIONS(options);

static const struct andiron_option of_kubelet[] = {
	OPTION(STRING, "url", "\"https://localhost:10250\"",
	       "URL of the kubelet, to which /pods is added."),
	OPTION(DURATION, "refresh_interval", "\"5s\"",
	       "How often it is asked for its pods, once a second at most; 0s is 5s.", .min = 0,
	       .max = INT64_MAX),
	OPTION(STRINGS, "namespaces", NULL,
	       "Namespaces whose pods are targets; all where the list is empty."),
	CLIENT_OPTIONS,
};
const struct andiron_options kubelet_options = ANDIRON_OPTIONS(of_kubelet);

static const struct andiron_option client[] = {
	OPTION(STRING, "api_server", NULL,
	       "URL of the API server; that of the cluster we run in where it is absent."),
	OPTION(STRING, "kubeconfig_file", NULL,
	       "kubeconfig file whose current context says how to reach the API server, instead "
	       "of api_server and the HTTP client arguments."),
	CLIENT_OPTIONS,
};
static const struct andiron_options client_table = ANDIRON_OPTIONS(client);

static const struct andiron_option of_remote[] = {
	OPTION(STRING, "namespace", NULL, "Namespace of the object.",
	       .flags = ANDIRON_OPTION_REQUIRED),
	OPTION(STRING, "name", NULL, "Name of the object.", .flags = ANDIRON_OPTION_REQUIRED),
	CLIENT_POLL_OPTIONS("\"1m\"", "\"15s\""),
	OPTION(BLOCK, "client", NULL,
	       "How the API server is reached; without it, as the cluster's service account.",
	       .block = &client_table),
};
const struct andiron_options remote_options = ANDIRON_OPTIONS(of_remote);

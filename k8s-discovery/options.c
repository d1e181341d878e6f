/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of discovery.kubernetes, names and defaults as Alloy's. */
#include "k8s-discovery/options.h"

#include "client/options.h"

static const struct andiron_option namespaces[] = {
	{.name = "names",
	 .type = ANDIRON_TYPE_STRINGS,
	 .doc = "Namespaces to look into; all where the list is empty."},
	{.name = "own_namespace",
	 .type = ANDIRON_TYPE_BOOL,
	 .default_text = "false",
	 .doc = "Whether the namespace that this pod runs in is added."},
};
static const struct andiron_options namespaces_table = ANDIRON_OPTIONS(namespaces);

static const char *const roles[] = {"node",          "pod",     "service", "endpoints",
				    "endpointslice", "ingress", NULL};

static const struct andiron_option selectors[] = {
	{.name = "role",
	 .type = ANDIRON_TYPE_STRING,
	 .flags = ANDIRON_OPTION_REQUIRED,
	 .choices = roles,
	 .doc = "What the selectors apply to."},
	{.name = "label",
	 .type = ANDIRON_TYPE_STRING,
	 .doc = "Label selector, as kubectl --selector takes it."},
	{.name = "field",
	 .type = ANDIRON_TYPE_STRING,
	 .doc = "Field selector, as kubectl --field-selector takes it."},
};
static const struct andiron_options selectors_table = ANDIRON_OPTIONS(selectors);

static const struct andiron_option attach[] = {
	{.name = "node",
	 .type = ANDIRON_TYPE_BOOL,
	 .default_text = "false",
	 .doc = "Whether targets of the roles pod, endpoints and endpointslice carry the labels of "
		"their node; nodes are watched for it."},
	{.name = "namespace",
	 .type = ANDIRON_TYPE_BOOL,
	 .default_text = "false",
	 .doc = "Whether targets carry the labels of their namespace; namespaces are watched for "
		"it."},
};
static const struct andiron_options attach_table = ANDIRON_OPTIONS(attach);

static const char *const scopes[] = {"node", "cluster", NULL};

static const struct andiron_option options[] = {
	{.name = "role",
	 .type = ANDIRON_TYPE_STRING,
	 .flags = ANDIRON_OPTION_REQUIRED,
	 .choices = roles,
	 .doc = "What to discover."},
	{.name = "api_server",
	 .type = ANDIRON_TYPE_STRING,
	 .doc = "URL of the API server; that of the cluster we run in where it is absent."},
	{.name = "kubeconfig_file",
	 .type = ANDIRON_TYPE_STRING,
	 .doc = "kubeconfig file whose current context says how to reach the API server, instead of "
		"api_server and the HTTP client arguments."},
	{.name = "scope",
	 .type = ANDIRON_TYPE_STRING,
	 .choices = scopes,
	 .doc = "Whether pods of this node are watched or those of the whole cluster. Without it, "
		"those of the node that the environment variable NODE_NAME names, and of the "
		"cluster where there is none."},
	{.name = "ephemeral_containers",
	 .type = ANDIRON_TYPE_BOOL,
	 .default_text = "false",
	 .doc = "Whether ephemeral containers are targets, too. Targets then carry "
		"__meta_kubernetes_pod_container_kind: container, init, sidecar or ephemeral."},
	{.name = "pods_without_ip",
	 .type = ANDIRON_TYPE_BOOL,
	 .default_text = "false",
	 .doc = "Whether pods without an address are targets, without an __address__. Targets "
		"then carry __meta_kubernetes_pod_container_kind."},
	{.name = "annotations",
	 .type = ANDIRON_TYPE_STRINGS,
	 .doc = "The annotations that targets carry, by name; all where it is absent. What no rule "
		"reads costs memory: see andiron_kubernetes_annotation_bytes."},
	{.name = "namespaces",
	 .type = ANDIRON_TYPE_BLOCK,
	 .block = &namespaces_table,
	 .doc = "Which namespaces to look into."},
	{.name = "selectors",
	 .type = ANDIRON_TYPE_BLOCK,
	 .flags = ANDIRON_OPTION_REPEATED,
	 .block = &selectors_table,
	 .doc = "Which objects the API server is asked for."},
	{.name = "attach_metadata",
	 .type = ANDIRON_TYPE_BLOCK,
	 .block = &attach_table,
	 .doc = "What else a target should carry."},
	CLIENT_OPTIONS,
};
const struct andiron_options kubernetes_options = ANDIRON_OPTIONS(options);

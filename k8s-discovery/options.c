/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of discovery.kubernetes, names and defaults as Alloy's. */
#include "options.h"

#include "client/options.h"

static const struct andiron_option namespaces[] = {
	{.name = "names", .type = ANDIRON_TYPE_STRINGS,
	 .doc = "Namespaces to look for pods in; all where the list is empty."},
	{.name = "own_namespace", .type = ANDIRON_TYPE_BOOL, .default_text = "false",
	 .doc = "Whether the namespace that this pod runs in is added."},
};
static const struct andiron_options namespaces_table = ANDIRON_OPTIONS(namespaces);

static const char *const roles[] = {"node", "pod", "service", "endpoints", "endpointslice",
				    "ingress", NULL};

static const struct andiron_option selectors[] = {
	{.name = "role", .type = ANDIRON_TYPE_STRING, .flags = ANDIRON_OPTION_REQUIRED,
	 .choices = roles, .doc = "What the selectors apply to."},
	{.name = "label", .type = ANDIRON_TYPE_STRING,
	 .doc = "Label selector, as kubectl --selector takes it."},
	{.name = "field", .type = ANDIRON_TYPE_STRING,
	 .doc = "Field selector, as kubectl --field-selector takes it."},
};
static const struct andiron_options selectors_table = ANDIRON_OPTIONS(selectors);

static const struct andiron_option attach[] = {
	{.name = "node", .type = ANDIRON_TYPE_BOOL, .flags = ANDIRON_OPTION_IGNORED,
	 .default_text = "false", .doc = "Whether a pod carries the labels of its node.",
	 .effect = "pods come without __meta_kubernetes_node_* labels"},
	{.name = "namespace", .type = ANDIRON_TYPE_BOOL, .flags = ANDIRON_OPTION_IGNORED,
	 .default_text = "false", .doc = "Whether a pod carries the labels of its namespace.",
	 .effect = "pods come without __meta_kubernetes_namespace_* labels"},
};
static const struct andiron_options attach_table = ANDIRON_OPTIONS(attach);

static const struct andiron_option options[] = {
	{.name = "role", .type = ANDIRON_TYPE_STRING, .flags = ANDIRON_OPTION_REQUIRED,
	 .choices = roles, .doc = "What to discover; this version discovers pods."},
	{.name = "api_server", .type = ANDIRON_TYPE_STRING,
	 .doc = "URL of the API server; that of the cluster we run in where it is absent."},
	{.name = "kubeconfig_file", .type = ANDIRON_TYPE_STRING,
	 .doc = "Refused: give api_server, bearer_token_file and tls_config."},
	{.name = "namespaces", .type = ANDIRON_TYPE_BLOCK, .block = &namespaces_table,
	 .doc = "Which namespaces to look into."},
	{.name = "selectors", .type = ANDIRON_TYPE_BLOCK, .flags = ANDIRON_OPTION_REPEATED,
	 .block = &selectors_table, .doc = "Which objects the API server is asked for."},
	{.name = "attach_metadata", .type = ANDIRON_TYPE_BLOCK, .block = &attach_table,
	 .doc = "What else a target should carry."},
	CLIENT_OPTIONS,
};
const struct andiron_options kubernetes_options = ANDIRON_OPTIONS(options);

/* SPDX-License-Identifier: Apache-2.0 */
/* andiron-kubernetes.so: discovery.kubernetes. Its options, which are Alloy's and a few of ours,
 * and its metrics; discovery.c runs it. */
#include "abi/metrics.h"
#include "client/options.h"
#include "k8s-discovery/arguments.h"
#include "k8s-discovery/discovery.h"

#include <andiron/plugin.h>

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
static const struct andiron_options kubernetes_options = ANDIRON_OPTIONS(options);

/* One series per kind that is watched, and per event where it has several. */
static void add_kinds(const struct andiron_metric_sink *sink, const struct discovery_counts *c)
{
	static const char *const names[] = {"add", "update", "delete"};

	for (size_t kind = 0; kind < N_KINDS; kind++) {
		const char *role = kinds[kind].role;

		for (size_t i = 0; i < 3 && c->watched & 1u << kind; i++)
			abi_metric(
				sink,
				&(struct abi_metric){
					"prometheus_sd_kubernetes_events_total",
					"Objects that came, changed or went, as watches told it.",
					(double)c->kinds[kind].events[i],
					.labels = {{"event", names[i]}, {"role", role}}});
		if (c->watched & 1u << kind)
			abi_metric(sink, &(struct abi_metric){"andiron_kubernetes_objects",
							      "Objects that are known.",
							      (double)c->objects[kind],
							      true,
							      {{"role", role}}});
	}
}

#define COUNT(member) ABI_COUNTER(struct discovery_counts, member)
#define GAUGE(member) ABI_GAUGE(struct discovery_counts, member)
#define WATCH(member) ABI_COUNTER(struct watch_counts, member)

static void metrics(void *self, const struct andiron_metric_sink *sink)
{
	static const struct abi_metric_row rows[] = {
		{"andiron_kubernetes_pods", GAUGE(objects[KIND_POD]), "Pods that are known."},
		{"andiron_kubernetes_targets", GAUGE(targets), "Targets that are published."},
		{"andiron_kubernetes_object_bytes", GAUGE(bytes),
		 "Bytes that are kept of objects."},
		{"andiron_kubernetes_annotation_bytes", GAUGE(annotation_bytes),
		 "Bytes of annotations among those that are kept of objects."},
		{"andiron_kubernetes_invalid_values_total", COUNT(not_utf8),
		 "Label values left out because they are not UTF-8, each time targets were made."},
		{"andiron_kubernetes_excess_targets_total", COUNT(cut),
		 "Targets left out because their object has too many, each time these were made."},
	};
	static const struct abi_metric_row of_watches[] = {
		{"andiron_kubernetes_lists_total", WATCH(lists),
		 "Requests for all objects: initial watches, and pages of lists."},
		{"andiron_kubernetes_watches_total", WATCH(watches),
		 "Watches begun from a known version."},
		{"andiron_kubernetes_bookmarks_total", WATCH(bookmarks), "Bookmarks of watches."},
		{"andiron_kubernetes_received_bytes_total", WATCH(bytes),
		 "Bytes of lists and watches."},
		{"prometheus_sd_kubernetes_failures_total", WATCH(failures),
		 "Lists and watches that failed."},
	};
	struct discovery_counts c = discovery_counts(self);
	struct watch_counts all = {0};

	for (size_t kind = 0; kind < N_KINDS; kind++)
		watch_counts_add(&all, &c.kinds[kind]);
	abi_metrics(sink, rows, sizeof(rows) / sizeof(*rows), &c);
	abi_metrics(sink, of_watches, sizeof(of_watches) / sizeof(*of_watches), &all);
	add_kinds(sink, &c);
}

static const struct andiron_export exports[] = {
	{"targets", ANDIRON_EXPORT_TARGETS, 0, "The targets of the role."},
};

static const struct andiron_component kubernetes = {
	.size = sizeof(kubernetes),
	.name = "discovery.kubernetes",
	.summary = "Finds pods, nodes, services and more through the Kubernetes API.",
	.options = &kubernetes_options,
	.exports = exports,
	.n_exports = 1,
	.validate = arguments_check,
	.create = discovery_create,
	.start = discovery_start,
	.update = discovery_update,
	.stop = discovery_stop,
	.destroy = discovery_free,
	.metrics = metrics,
	.resend = discovery_resend,
};

ANDIRON_PLUGIN("kubernetes", ANDIRON_VERSION, "Apache-2.0", &kubernetes);

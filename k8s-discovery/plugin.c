/* SPDX-License-Identifier: Apache-2.0 */
/* andiron-kubernetes.so: discovery.kubernetes, which discovery.c runs, discovery.kubelet, which
 * kubelet.c runs, remote.kubernetes.secret and remote.kubernetes.configmap, which remote.c runs. */
#include "abi/metrics.h"
#include "client/loop.h"
#include "k8s-discovery/arguments.h"
#include "k8s-discovery/discovery.h"
#include "k8s-discovery/kubelet.h"
#include "k8s-discovery/options.h"
#include "k8s-discovery/remote.h"

#include <andiron/plugin.h>

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
		{"andiron_kubernetes_unreadable_objects_total", WATCH(skipped),
		 "Objects left out of lists and watches because their JSON is not to be read."},
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
	client_loop_metrics(discovery_loop(self), sink);
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
	.sender = client_serve,
};

static const struct andiron_export pods[] = {
	{"targets", ANDIRON_EXPORT_TARGETS, 0, "The ports and containers of the pods."},
};

static const struct andiron_component kubelet = {
	.size = sizeof(kubelet),
	.name = "discovery.kubelet",
	.summary = "Finds the pods of a node through its kubelet.",
	.options = &kubelet_options,
	.exports = pods,
	.n_exports = 1,
	.validate = kubelet_check,
	.create = kubelet_create,
	.start = kubelet_start,
	.update = kubelet_update,
	.stop = kubelet_stop,
	.destroy = kubelet_free,
	.metrics = kubelet_metrics,
	.resend = kubelet_resend,
	.sender = client_serve,
};

static const struct andiron_export data[] = {
	{"data", ANDIRON_EXPORT_VALUE, 0, "The object's entries, by key."},
};

static const char *const values[] = {ANDIRON_VALUES_ID, NULL};

static const struct andiron_component secret = {
	.size = sizeof(secret),
	.name = "remote.kubernetes.secret",
	.summary = "Asks a Kubernetes API server for the entries of a Secret.",
	.options = &remote_options,
	.exports = data,
	.n_exports = 1,
	.needs = values,
	.validate = remote_check,
	.create = remote_create_secret,
	.start = remote_start,
	.stop = remote_stop,
	.destroy = remote_free,
	.metrics = remote_metrics,
	.sender = client_serve,
};

static const struct andiron_component configmap = {
	.size = sizeof(configmap),
	.name = "remote.kubernetes.configmap",
	.summary = "Asks a Kubernetes API server for the entries of a ConfigMap.",
	.options = &remote_options,
	.exports = data,
	.n_exports = 1,
	.needs = values,
	.validate = remote_check,
	.create = remote_create_configmap,
	.start = remote_start,
	.stop = remote_stop,
	.destroy = remote_free,
	.metrics = remote_metrics,
	.sender = client_serve,
};

ANDIRON_PLUGIN("kubernetes", ANDIRON_VERSION, "Apache-2.0", &kubernetes, &kubelet, &secret,
	       &configmap);

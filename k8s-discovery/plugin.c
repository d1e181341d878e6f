/* SPDX-License-Identifier: Apache-2.0 */
/* andiron-kubernetes.so: discovery.kubernetes. The ABI's verbs over the engine in discovery.h. */
#include "abi/metrics.h"
#include "k8s-discovery/discovery.h"
#include "k8s-discovery/options.h"

#include <andiron/plugin.h>

#include <errno.h>
#include <stdlib.h>

struct instance {
	struct abi_context context;
	struct discovery *discovery;
};

static int32_t validate(const struct andiron_host *host, const struct andiron_value *args,
			struct andiron_report *report)
{
	arguments_check(host, args, report);
	return 0;
}

static int32_t create(const struct andiron_host *host, uint64_t id,
		      const struct andiron_value *args, void **ret_self,
		      struct andiron_error *ret_err)
{
	struct instance *self = calloc(1, sizeof(*self));
	struct error err = ERROR_NULL;
	int r;

	if (!self)
		return -ENOMEM;
	self->context = (struct abi_context){host, id};
	r = discovery_new(&self->context, args, &self->discovery, &err);
	if (r < 0) {
		free(self);
		return err.code ? abi_error(host, ret_err, &err) : r;
	}
	*ret_self = self;
	return 0;
}

static int32_t start(void *arg, struct andiron_error *ret_err)
{
	struct instance *self = arg;

	return discovery_start(self->discovery);
}

static int32_t update(void *arg, const struct andiron_value *args, struct andiron_error *ret_err)
{
	struct instance *self = arg;
	struct error err = ERROR_NULL;
	int r = discovery_update(self->discovery, args, &err);

	return err.code ? abi_error(self->context.host, ret_err, &err) : r;
}

static void resend(void *arg, const char *export_name)
{
	struct instance *self = arg;

	discovery_resend(self->discovery);
}

static void stop(void *arg)
{
	struct instance *self = arg;

	discovery_stop(self->discovery);
}

static void destroy(void *arg)
{
	struct instance *self = arg;

	discovery_free(self->discovery);
	free(self);
}

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

static void metrics(void *arg, const struct andiron_metric_sink *sink)
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
	const struct instance *self = arg;
	struct discovery_counts c = discovery_counts(self->discovery);
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
	.validate = validate,
	.create = create,
	.start = start,
	.update = update,
	.stop = stop,
	.destroy = destroy,
	.metrics = metrics,
	.resend = resend,
};

ANDIRON_PLUGIN("kubernetes", ANDIRON_VERSION, "Apache-2.0", &kubernetes);

/* SPDX-License-Identifier: Apache-2.0 */
/* andiron-kubernetes.so: discovery.kubernetes. The ABI's verbs over the engine in discovery.h. */
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

static void add(const struct andiron_metric_sink *sink, const char *name, const char *help,
		uint32_t kind, double value)
{
	const struct andiron_metric metric = {name, help, kind, 0, NULL, value};

	sink->add(sink->self, &metric);
}

/* One series per kind that is watched, and per event where it has several. */
static void add_events(const struct andiron_metric_sink *sink, const struct discovery_counts *c)
{
	static const char *const names[] = {"add", "update", "delete"};

	for (size_t kind = 0; kind < N_KINDS; kind++) {
		for (size_t i = 0; i < 3 && c->watched & 1u << kind; i++) {
			const struct andiron_kv labels[] = {
				{abi_str_of(STR("event")), abi_str_of(str_of(names[i]))},
				{abi_str_of(STR("role")), abi_str_of(str_of(kinds[kind].role))}};
			const struct andiron_metric metric = {
				"prometheus_sd_kubernetes_events_total",
				"Objects that came, changed or went, as watches told it.",
				ANDIRON_METRIC_COUNTER,
				2,
				labels,
				(double)c->kinds[kind].events[i]};

			sink->add(sink->self, &metric);
		}
	}
}

static void add_objects(const struct andiron_metric_sink *sink, const struct discovery_counts *c)
{
	for (size_t kind = 0; kind < N_KINDS; kind++) {
		const struct andiron_kv labels[] = {
			{abi_str_of(STR("role")), abi_str_of(str_of(kinds[kind].role))}};
		const struct andiron_metric metric = {"andiron_kubernetes_objects",
						      "Objects that are known.",
						      ANDIRON_METRIC_GAUGE,
						      1,
						      labels,
						      (double)c->objects[kind]};

		if (c->watched & 1u << kind)
			sink->add(sink->self, &metric);
	}
}

static void metrics(void *arg, const struct andiron_metric_sink *sink)
{
	const struct instance *self = arg;
	struct discovery_counts c = discovery_counts(self->discovery);
	struct watch_counts all = {0};

	for (size_t kind = 0; kind < N_KINDS; kind++)
		watch_counts_add(&all, &c.kinds[kind]);
	add(sink, "andiron_kubernetes_pods", "Pods that are known.", ANDIRON_METRIC_GAUGE,
	    (double)c.objects[KIND_POD]);
	add_objects(sink, &c);
	add(sink, "andiron_kubernetes_targets", "Targets that are published.", ANDIRON_METRIC_GAUGE,
	    (double)c.targets);
	add(sink, "andiron_kubernetes_object_bytes", "Bytes that are kept of objects.",
	    ANDIRON_METRIC_GAUGE, (double)c.bytes);
	add(sink, "andiron_kubernetes_annotation_bytes",
	    "Bytes of annotations among those that are kept of objects.", ANDIRON_METRIC_GAUGE,
	    (double)c.annotation_bytes);
	add(sink, "andiron_kubernetes_invalid_values_total",
	    "Label values left out because they are not UTF-8, each time targets were made.",
	    ANDIRON_METRIC_COUNTER, (double)c.not_utf8);
	add(sink, "andiron_kubernetes_excess_targets_total",
	    "Targets left out because their object has too many, each time these were made.",
	    ANDIRON_METRIC_COUNTER, (double)c.cut);
	add(sink, "andiron_kubernetes_lists_total",
	    "Requests for all objects: initial watches, and pages of lists.",
	    ANDIRON_METRIC_COUNTER, (double)all.lists);
	add(sink, "andiron_kubernetes_watches_total", "Watches begun from a known version.",
	    ANDIRON_METRIC_COUNTER, (double)all.watches);
	add(sink, "andiron_kubernetes_bookmarks_total", "Bookmarks of watches.",
	    ANDIRON_METRIC_COUNTER, (double)all.bookmarks);
	add(sink, "andiron_kubernetes_received_bytes_total", "Bytes of lists and watches.",
	    ANDIRON_METRIC_COUNTER, (double)all.bytes);
	add_events(sink, &c);
	add(sink, "prometheus_sd_kubernetes_failures_total", "Lists and watches that failed.",
	    ANDIRON_METRIC_COUNTER, (double)all.failures);
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

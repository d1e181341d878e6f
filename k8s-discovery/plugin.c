/* SPDX-License-Identifier: Apache-2.0 */
/*
 * andiron-kubernetes.so: discovery.kubernetes. The ABI's verbs over the engine
 * in discovery.h.
 */
#include "client/options.h"
#include "discovery.h"
#include "options.h"

#include <andiron/plugin.h>

#include <errno.h>
#include <stdlib.h>

struct instance {
	struct abi_context context;
	struct discovery *discovery;
};

static void refuse(const struct andiron_host *host, struct andiron_report *report,
		   const struct andiron_value *at, const char *text)
{
	abi_report(host, report, ANDIRON_REPORT_ERROR, at, "%s", text);
}

static void check_selectors(const struct andiron_host *host, const struct andiron_value *args,
			    struct andiron_report *report)
{
	const struct andiron_value *blocks = value_get(args, "selectors");

	for (uint64_t i = 0; blocks && i < blocks->n_items; i++) {
		const struct andiron_value *role = value_get(&blocks->items[i], "role");

		if (role && !str_is(abi_str(role->string), "pod"))
			refuse(host, report, role, "the role pod takes selectors of the role pod only");
		else if (i > 0)
			refuse(host, report, &blocks->items[i],
			       "there may be one selectors block per role; join them by a comma");
	}
}

static int32_t validate(const struct andiron_host *host, const struct andiron_value *args,
			struct andiron_report *report)
{
	const struct andiron_value *role = value_get(args, "role");
	const struct andiron_value *file = value_get(args, "kubeconfig_file");
	const struct andiron_value *spaces = value_get(args, "namespaces");

	if (role && !str_is(abi_str(role->string), "pod"))
		abi_report(host, report, ANDIRON_REPORT_ERROR, role,
			   "this version discovers the role \"pod\" only, not \"%.*s\"",
			   STR_FMT(abi_str(role->string)));
	if (file && file->string.len)
		refuse(host, report, file,
		       "kubeconfig files are not read by this version; give api_server, "
		       "bearer_token_file and tls_config");
	if (spaces && value_bool(spaces, "own_namespace", false) && value_get(args, "api_server"))
		refuse(host, report, spaces, "own_namespace works in the cluster only, without api_server");
	check_selectors(host, args, report);
	client_check(host, args, report);
	return 0;
}

static int32_t create(const struct andiron_host *host, uint64_t id, const struct andiron_value *args,
		      void **ret_self, struct andiron_error *ret_err)
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

static void metrics(void *arg, const struct andiron_metric_sink *sink)
{
	const struct instance *self = arg;
	struct discovery_counts c = discovery_counts(self->discovery);
	const struct andiron_metric all[] = {
		{"andiron_kubernetes_pods", "Pods that are known.", ANDIRON_METRIC_GAUGE, 0, NULL,
		 (double)c.pods},
		{"andiron_kubernetes_lists_total", "Requests for a list of pods.",
		 ANDIRON_METRIC_COUNTER, 0, NULL, (double)c.lists},
		{"andiron_kubernetes_watches_total", "Watches begun.", ANDIRON_METRIC_COUNTER, 0, NULL,
		 (double)c.watches},
		{"prometheus_sd_kubernetes_events_total", "Events of watches.",
		 ANDIRON_METRIC_COUNTER, 0, NULL, (double)c.events},
		{"prometheus_sd_kubernetes_failures_total", "Lists and watches that failed.",
		 ANDIRON_METRIC_COUNTER, 0, NULL, (double)c.failures},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		sink->add(sink->self, &all[i]);
}

static const struct andiron_export exports[] = {
	{"targets", ANDIRON_EXPORT_TARGETS, 0, "One target per container port, or per container."},
};

static const struct andiron_component kubernetes = {
	.size = sizeof(kubernetes),
	.name = "discovery.kubernetes",
	.summary = "Finds pods through the Kubernetes API.",
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
};

static const struct andiron_component *const components[] = {&kubernetes};

const struct andiron_plugin andiron_plugin_v1 = {
	.size = sizeof(andiron_plugin_v1),
	.abi_minor = ANDIRON_ABI_MINOR,
	.name = "kubernetes",
	.version = ANDIRON_VERSION,
	.license = "Apache-2.0",
	.components = components,
	.n_components = 1,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* andiron-relabel.so: discovery.relabel. */
#include "abi/log.h"
#include "abi/value.h"
#include "dropped.h"
#include "options.h"
#include "relabel.h"

#include <andiron/plugin.h>

#include <errno.h>

struct instance {
	struct abi_context context;
	struct relabel *relabel;
};

static int32_t validate(const struct andiron_host *host, const struct andiron_value *args,
			struct andiron_report *report)
{
	const struct andiron_value *blocks = value_get(args, "rule");

	for (uint64_t i = 0; blocks && i < blocks->n_items; i++) {
		struct error err = ERROR_NULL;
		const struct andiron_value *at = NULL;
		struct rule *rule = NULL;

		if (rule_from_value(&blocks->items[i], &rule, &err, &at))
			abi_report(host, report, ANDIRON_REPORT_ERROR, at, "%s",
				   err.code ? err.text : "out of memory");
		rule_free(rule);
	}
	return 0;
}

/* Everything that changed goes out, and the health says what became of it. */
static void publish(struct instance *in)
{
	const struct andiron_targets *update = NULL;
	struct relabel_totals totals;

	if (relabel_flush(in->relabel, &update)) {
		abi_health(&in->context, ANDIRON_HEALTH_UNHEALTHY,
			   "out of memory: the output is not up to date");
		return;
	}
	if (update) {
		in->context.host->send_targets(in->context.instance, "output", update);
		update->release(update->owner);
	}
	relabel_totals(in->relabel, &totals);
	if (totals.large)
		abi_health(&in->context, ANDIRON_HEALTH_UNHEALTHY,
			   "%llu targets were left out: the rules made their labels too large",
			   (unsigned long long)totals.large);
	else
		abi_health(&in->context, ANDIRON_HEALTH_HEALTHY, "%llu of %llu targets are kept",
			   (unsigned long long)totals.kept, (unsigned long long)totals.rows);
}

static void destroy(void *self)
{
	struct instance *in = self;

	if (in)
		relabel_free(in->relabel);
	free(in);
}

static int32_t create(const struct andiron_host *host, uint64_t instance,
		      const struct andiron_value *args, void **ret_self, struct andiron_error *err)
{
	struct error cause = ERROR_NULL;
	struct rules rules = {0};
	struct instance *in;
	int r = rules_from_args(args, &rules, &cause);

	if (r)
		return abi_error(host, err, &cause);
	in = calloc(1, sizeof(*in));
	if (in)
		in->relabel = relabel_new(instance);
	if (!in || !in->relabel || relabel_set_rules(in->relabel, &rules)) {
		rules_free(&rules);
		destroy(in);
		return -ENOMEM;
	}
	in->context = (struct abi_context){host, instance};
	*ret_self = in;
	return 0;
}

static int32_t start(void *self, struct andiron_error *err)
{
	publish(self);
	return 0;
}

static int32_t update(void *self, const struct andiron_value *args, struct andiron_error *err)
{
	struct instance *in = self;
	struct error cause = ERROR_NULL;
	struct rules rules = {0};
	int r = rules_from_args(args, &rules, &cause);

	if (r)
		return abi_error(in->context.host, err, &cause);
	r = relabel_set_rules(in->relabel, &rules);
	publish(in);
	return r;
}

static void stop(void *self)
{
}

static void targets(void *self, const char *port, const struct andiron_targets *change)
{
	struct instance *in = self;
	int r = relabel_apply(in->relabel, change);

	if (r == -EAGAIN) /* a generation is missing: the host sends a snapshot */
		return;
	if (r)
		abi_log(&in->context, ANDIRON_LOG_ERROR,
			r == -ENOMEM ? "out of memory: some targets are not up to date"
				     : "a target update breaks the ABI and is ignored");
	publish(in);
}

static void metrics(void *self, const struct andiron_metric_sink *sink)
{
	struct instance *in = self;
	struct relabel_totals t;

	relabel_totals(in->relabel, &t);
	const struct andiron_metric all[] = {
		{"andiron_relabel_input_targets", "Targets that come in.", ANDIRON_METRIC_GAUGE, 0,
		 NULL, (double)t.rows},
		{"andiron_relabel_output_targets", "Targets that the rules keep.",
		 ANDIRON_METRIC_GAUGE, 0, NULL, (double)t.kept},
		{"andiron_relabel_evaluations_total", "Targets that the rules have worked on.",
		 ANDIRON_METRIC_COUNTER, 0, NULL, (double)t.evaluated},
		{"andiron_relabel_too_large_total",
		 "Targets whose labels the rules made too large.", ANDIRON_METRIC_COUNTER, 0, NULL,
		 (double)t.large},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		sink->add(sink->self, &all[i]);
}

static int32_t each_dropped(void *self, const struct andiron_dropped_sink *sink)
{
	return dropped_each(((struct instance *)self)->relabel, sink);
}

static const void *extension(void *self, const char *id)
{
	static const struct andiron_dropped table = {.size = sizeof(table), .each = each_dropped};

	return strcmp(id, ANDIRON_DROPPED_ID) == 0 ? &table : NULL;
}

static const struct andiron_export exports[] = {
	{.name = "output",
	 .type = ANDIRON_EXPORT_TARGETS,
	 .doc = "The targets after the last rule."},
	{.name = "rules", .type = ANDIRON_EXPORT_CAPSULE, .doc = "The rules, by name."},
};

static const struct andiron_component relabel = {
	.size = sizeof(relabel),
	.name = "discovery.relabel",
	.summary = "Rewrites, keeps and drops targets by rules.",
	.options = &relabel_options,
	.exports = exports,
	.n_exports = sizeof(exports) / sizeof(*exports),
	.validate = validate,
	.create = create,
	.start = start,
	.update = update,
	.stop = stop,
	.destroy = destroy,
	.targets = targets,
	.metrics = metrics,
	.extension = extension,
};

static const struct andiron_component *const components[] = {&relabel};

const struct andiron_plugin andiron_plugin_v1 = {
	.size = sizeof(andiron_plugin_v1),
	.abi_minor = ANDIRON_ABI_MINOR,
	.name = "relabel",
	.version = ANDIRON_VERSION,
	.license = "Apache-2.0",
	.components = components,
	.n_components = sizeof(components) / sizeof(*components),
};

/* SPDX-License-Identifier: Apache-2.0 */
/* pyroscope.ebpf under the ABI; driver.h does the work. */
#include "ebpf/driver.h"
#include "ebpf/metrics.h"

#include "abi/value.h"

#include <andiron/object.h>
#include <andiron/plugin.h>
#include <andiron/runtime.h>

#include <errno.h>
#include <stdio.h>

/* Those that nobody offers are left without, which the engine says. */
static void find_runtimes(const struct andiron_host *host, uint64_t instance,
			  struct ebpf_options *options)
{
	char id[sizeof(ANDIRON_RUNTIME_PREFIX) + RUNTIME_NAME_MAX + sizeof(ANDIRON_RUNTIME_SUFFIX)];

	for (size_t i = 0; i < options->n_runtimes; i++) {
		struct andiron_extension found = {0};

		snprintf(id, sizeof(id), "%s%s%s", ANDIRON_RUNTIME_PREFIX,
			 options->runtimes[i].name, ANDIRON_RUNTIME_SUFFIX);
		if (host->extension(instance, id, &found) == 0)
			options->runtimes[i].extension = found;
	}
}

static int32_t create(const struct andiron_host *host, uint64_t instance,
		      const struct andiron_value *args, void **ret_self, struct andiron_error *err)
{
	struct abi_context c = {host, instance};
	struct andiron_extension objects;
	struct ebpf_options options;
	struct driver *driver;
	int r = host->extension(instance, ANDIRON_OBJECTS_ID, &objects);

	if (r == 0)
		r = ebpf_options_read(&options, args);
	if (r == 0) {
		find_runtimes(host, instance, &options);
		r = driver_new(&c, &options, &objects, &driver);
	}
	if (r == 0)
		*ret_self = driver;
	return r;
}

static int32_t start(void *self, struct andiron_error *err)
{
	struct error error = ERROR_NULL;
	int r = driver_start(self, &error);

	return r == 0 ? 0 : driver_error(self, err, r, &error);
}

static int32_t update(void *self, const struct andiron_value *args, struct andiron_error *err)
{
	struct ebpf_options options;
	int r = ebpf_options_read(&options, args);

	if (r == 0) {
		find_runtimes(driver_context(self)->host, driver_context(self)->instance, &options);
		driver_update(self, &options);
	}
	return r;
}

static int32_t drain(void *self, int64_t deadline_ns)
{
	driver_finish(self);
	return 0;
}

static void stop(void *self)
{
	driver_stop(self);
}

static void destroy(void *self)
{
	driver_free(self);
}

static void targets(void *self, const char *port, const struct andiron_targets *update)
{
	driver_targets(self, update);
}

static void add_metric(void *context, const struct metric *m)
{
	const struct andiron_metric_sink *sink = context;
	struct andiron_kv label = {abi_str_of(str_of(m->label)), abi_str_of(str_of(m->text))};
	struct andiron_metric metric = {
		.name = m->name,
		.help = m->help,
		.kind = m->counter ? ANDIRON_METRIC_COUNTER : ANDIRON_METRIC_GAUGE,
		.n_labels = m->label != NULL,
		.labels = &label,
		.value = m->value,
	};

	sink->add(sink->self, &metric);
}

static void metrics(void *self, const struct andiron_metric_sink *sink)
{
	struct andiron_metric_sink own = *sink;

	metrics_each(driver_stats(self), add_metric, &own);
}

static int32_t each_target(void *self, const struct andiron_target_processes_sink *sink)
{
	struct target_report_sink adding = {.sink = sink};
	int r = driver_report_targets(self, target_report_add, &adding);

	return r == 0 && adding.failed ? -ENOMEM : r;
}

static const void *extension(void *self, const char *id)
{
	static const struct andiron_target_processes table = {.size = sizeof(table),
							      .each = each_target};

	return strcmp(id, ANDIRON_TARGET_PROCESSES_ID) == 0 ? &table : NULL;
}

static const char *const needs[] = {ANDIRON_OBJECTS_ID, NULL};
static const char *const wants[] = {ANDIRON_RUNTIME_PREFIX, NULL};

static const char *const capabilities[] = {
	"CAP_BPF",
	"CAP_PERFMON",
	"CAP_SYS_PTRACE",
	"CAP_CHECKPOINT_RESTORE",
	"CAP_DAC_READ_SEARCH",
	"CAP_SYSLOG",
	NULL,
};

static const struct andiron_component ebpf = {
	.size = sizeof(ebpf),
	.flags = ANDIRON_COMPONENT_RAW_FRAMES,
	.name = "pyroscope.ebpf",
	.summary = "Profiles the CPU time of every process, or of targets, by eBPF.",
	.options = &ebpf_options,
	.needs = needs,
	.wants = wants,
	.capabilities = capabilities,
	.validate = ebpf_options_validate,
	.create = create,
	.start = start,
	.update = update,
	.drain = drain,
	.stop = stop,
	.destroy = destroy,
	.targets = targets,
	.metrics = metrics,
	.extension = extension,
};

static const struct andiron_component *const components[] = {&ebpf};

const struct andiron_plugin andiron_plugin_v1 = {
	.size = sizeof(andiron_plugin_v1),
	.abi_minor = ANDIRON_ABI_MINOR,
	.name = "ebpf",
	.version = ANDIRON_VERSION,
	.license = "Apache-2.0",
	.components = components,
	.n_components = 1,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* pyroscope.ebpf under the ABI; driver.h does the work. */
#include "ebpf/driver.h"
#include "ebpf/metrics.h"

#include <andiron/object.h>
#include <andiron/plugin.h>
#include <andiron/runtime.h>

#include <errno.h>
#include <string.h>

static int32_t create(const struct andiron_host *host, uint64_t instance,
		      const struct andiron_value *args, void **ret_self, struct andiron_error *err)
{
	struct abi_context c = {host, instance};
	struct andiron_extension objects;
	struct ebpf_options options;
	struct error error = ERROR_NULL;
	int r = host->extension(instance, ANDIRON_OBJECTS_ID, &objects);

	if (r != 0) {
		error_set(&error, r,
			  "the host does not offer " ANDIRON_OBJECTS_ID
			  ", by which the sampler keeps files");
		return abi_error(host, err, &error, r);
	}
	r = ebpf_options_read(&options, args);
	return r == 0 ? driver_new(&c, &options, &objects, ret_self) : r;
}

static int32_t update(void *self, const struct andiron_value *args, struct andiron_error *err)
{
	struct ebpf_options options;
	int r = ebpf_options_read(&options, args);

	if (r == 0)
		driver_update(self, &options);
	return r;
}

static void metrics(void *self, const struct andiron_metric_sink *sink)
{
	metrics_add(driver_stats(self), sink);
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
static const char *const offers[] = {ANDIRON_TARGET_PROCESSES_ID, NULL};
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
	.offers = offers,
	.wants = wants,
	.capabilities = capabilities,
	.validate = ebpf_options_validate,
	.create = create,
	.start = driver_start,
	.update = update,
	.drain = driver_drain,
	.stop = driver_stop,
	.destroy = driver_free,
	.targets = driver_targets,
	.metrics = metrics,
	.extension = extension,
};

ANDIRON_PLUGIN("ebpf", ANDIRON_VERSION, "Apache-2.0", &ebpf);

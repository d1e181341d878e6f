/* SPDX-License-Identifier: Apache-2.0 */
/* pyroscope.ebpf under the ABI; driver.h does the work. */
#include "ebpf/driver.h"

#include <andiron/plugin.h>
#include <andiron/runtime.h>

static int32_t create(const struct andiron_host *host, uint64_t instance,
		      const struct andiron_value *args, void **ret_self, struct andiron_error *err)
{
	const struct abi_context c = {host, instance};
	struct ebpf_options options;
	int r = ebpf_options_read(&options, args);

	return r == 0 ? driver_new(&c, &options, ret_self, err) : r;
}

static int32_t update(void *self, const struct andiron_value *args, struct andiron_error *err)
{
	struct ebpf_options options;
	int r = ebpf_options_read(&options, args);

	if (r == 0)
		driver_update(self, &options);
	return r;
}

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
	.needs = driver_needs,
	.offers = driver_offers,
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
	.metrics = driver_metrics,
	.extension = driver_extension,
};

ANDIRON_PLUGIN("ebpf", ANDIRON_VERSION, "Apache-2.0", &ebpf);

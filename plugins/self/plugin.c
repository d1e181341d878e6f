/* SPDX-License-Identifier: Apache-2.0 */
/* profile.self under the ABI: the engine of pyroscope.ebpf, on the session of session.c. */
#include "ebpf/driver.h"
#include "self/options.h"

#include <andiron/plugin.h>

static int32_t create(const struct andiron_host *host, uint64_t instance,
		      const struct andiron_value *args, void **ret_self, struct andiron_error *err)
{
	const struct abi_context c = {host, instance};
	struct ebpf_options options;
	int r = self_options_read(&options, args);

	return r == 0 ? driver_new(&c, &options, ret_self, err) : r;
}

static int32_t update(void *self, const struct andiron_value *args, struct andiron_error *err)
{
	struct ebpf_options options;
	int r = self_options_read(&options, args);

	if (r == 0)
		driver_update(self, &options);
	return r;
}

static const struct andiron_component own_process = {
	.size = sizeof(own_process),
	.flags = ANDIRON_COMPONENT_RAW_FRAMES,
	.name = "profile.self",
	.summary = "Profiles the CPU time of the process that it runs in, without privileges.",
	.options = &self_options,
	.needs = driver_needs,
	.offers = driver_offers,
	.validate = self_options_validate,
	.create = create,
	.start = driver_start,
	.update = update,
	.drain = driver_drain,
	.stop = driver_stop,
	.destroy = driver_free,
	.metrics = driver_metrics,
	.extension = driver_extension,
};

ANDIRON_PLUGIN("self", ANDIRON_VERSION, "Apache-2.0", &own_process);

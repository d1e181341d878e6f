/* SPDX-License-Identifier: Apache-2.0 */
/* andiron-java.so: pyroscope.java. The ABI's verbs over the engine in profiler.h. */
#include "abi/value.h"
#include "java/metrics.h"
#include "java/options.h"
#include "java/profiler.h"

#include <andiron/plugin.h>

#include <errno.h>
#include <stdlib.h>

struct instance {
	struct abi_context context;
	struct profiler *profiler;
};

static int32_t validate(const struct andiron_host *host, const struct andiron_value *args,
			struct andiron_report *report)
{
	settings_check(host, args, report);
	return 0;
}

static int32_t create(const struct andiron_host *host, uint64_t instance,
		      const struct andiron_value *args, void **ret_self, struct andiron_error *err)
{
	struct instance *in = calloc(1, sizeof(*in));
	struct error cause = ERROR_NULL;
	struct settings *settings;
	int r = in ? settings_new(args, &settings, &cause) : -ENOMEM;

	if (r == 0) {
		in->context = (struct abi_context){host, instance};
		r = profiler_new(&in->context, settings, &in->profiler);
	}
	if (r < 0) {
		free(in);
		return abi_error(host, err, &cause, r);
	}
	*ret_self = in;
	return 0;
}

static int32_t start(void *self, struct andiron_error *err)
{
	profiler_start(((struct instance *)self)->profiler);
	return 0;
}

static int32_t update(void *self, const struct andiron_value *args, struct andiron_error *err)
{
	struct instance *in = self;
	struct error cause = ERROR_NULL;
	struct settings *settings;
	int r = settings_new(args, &settings, &cause);

	if (r < 0)
		return abi_error(in->context.host, err, &cause, r);
	profiler_update(in->profiler, settings);
	return 0;
}

static int32_t drain(void *self, int64_t deadline_ns)
{
	profiler_drain(((struct instance *)self)->profiler);
	return 0;
}

static void stop(void *self)
{
	profiler_stop(((struct instance *)self)->profiler);
}

static void destroy(void *self)
{
	struct instance *in = self;

	profiler_free(in->profiler);
	free(in);
}

static void targets(void *self, const char *port, const struct andiron_targets *change)
{
	profiler_targets(((struct instance *)self)->profiler, change);
}

static void metrics(void *self, const struct andiron_metric_sink *sink)
{
	struct profiler_counts counts = profiler_counts(((struct instance *)self)->profiler);

	metrics_add(&counts, sink);
}

static int32_t each_target(void *self, const struct andiron_target_processes_sink *sink)
{
	return profiler_each(((struct instance *)self)->profiler, sink);
}

static const void *extension(void *self, const char *id)
{
	static const struct andiron_target_processes table = {.size = sizeof(table),
							      .each = each_target};

	return strcmp(id, ANDIRON_TARGET_PROCESSES_ID) == 0 ? &table : NULL;
}

static const char *const offers[] = {ANDIRON_TARGET_PROCESSES_ID, NULL};

/* For JVMs of other users: their roots, and acting as them. Those of the agent's own user take
 * none. */
static const char *const capabilities[] = {"CAP_SETUID", "CAP_SETGID", "CAP_SYS_PTRACE", NULL};

static const struct andiron_component java = {
	.size = sizeof(java),
	.name = "pyroscope.java",
	.summary = "Profiles JVMs by async-profiler: CPU time, allocations, locks.",
	.options = &java_options,
	.offers = offers,
	.capabilities = capabilities,
	.validate = validate,
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

ANDIRON_PLUGIN("java", ANDIRON_VERSION, "Apache-2.0", &java);

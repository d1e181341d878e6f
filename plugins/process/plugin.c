/* SPDX-License-Identifier: Apache-2.0 */
/* andiron-process.so: process.events, the service that traces processes, and discovery.process,
 * which makes targets of them. */
#include "abi/metrics.h"
#include "process/discovery.h"
#include "process/options.h"
#include "process/service.h"

#include <andiron/plugin.h>

#include <errno.h>
#include <string.h>

static int32_t events_create(const struct andiron_host *host, uint64_t instance,
			     const struct andiron_value *args, void **ret_self,
			     struct andiron_error *err)
{
	struct service *s = service_new(host, instance);

	if (!s)
		return -ENOMEM;
	*ret_self = s;
	return 0;
}

static int32_t events_start(void *self, struct andiron_error *err)
{
	struct error cause = ERROR_NULL;
	int r = service_start(self, &cause);

	return abi_error(service_host(self), err, &cause, r);
}

static void events_stop(void *self)
{
	service_stop(self);
}

static void events_destroy(void *self)
{
	service_free(self);
}

static void events_metrics(void *self, const struct andiron_metric_sink *sink)
{
	static const struct abi_metric_row rows[] = {
		{"andiron_process_events_total", ABI_COUNTER(struct service_totals, events),
		 "Process events seen."},
		{"andiron_process_events_lost_total", ABI_COUNTER(struct service_totals, lost),
		 "Process events lost in the kernel."},
		{"andiron_process_events_wakeups_total",
		 ABI_COUNTER(struct service_totals, wakeups),
		 "How often the reader of process events woke up."},
		{"andiron_process_events_subscribers",
		 ABI_GAUGE(struct service_totals, subscribers), "Subscribers to process events."},
	};
	struct service_totals totals;

	service_totals(self, &totals);
	abi_metrics(sink, rows, sizeof(rows) / sizeof(*rows), &totals);
}

static const void *events_extension(void *self, const char *id)
{
	return strcmp(id, ANDIRON_PROCESS_EVENTS_ID) == 0 ? &service_table : NULL;
}

static const char *const events_offers[] = {ANDIRON_PROCESS_EVENTS_ID, NULL};
static const char *const events_capabilities[] = {"CAP_BPF", "CAP_PERFMON", NULL};
static const struct andiron_options no_options = {0, sizeof(struct andiron_option), NULL};

static const struct andiron_component events = {
	.size = sizeof(events),
	.flags = ANDIRON_COMPONENT_SERVICE | ANDIRON_COMPONENT_NO_LABEL,
	.name = "process.events",
	.summary = "Tells who asks of each process that begins, execs and ends.",
	.options = &no_options,
	.offers = events_offers,
	.capabilities = events_capabilities,
	.create = events_create,
	.start = events_start,
	.stop = events_stop,
	.destroy = events_destroy,
	.metrics = events_metrics,
	.extension = events_extension,
};

static int32_t process_create(const struct andiron_host *host, uint64_t instance,
			      const struct andiron_value *args, void **ret_self,
			      struct andiron_error *err)
{
	const struct discovery_config config = options_config(args);
	struct discovery *d = discovery_new(host, instance, &config);
	static const char text[] = "no memory, or /proc cannot be opened";

	if (!d)
		return host->error_add(err, -ENOMEM, text, sizeof(text) - 1);
	*ret_self = d;
	return 0;
}

static int32_t process_start(void *self, struct andiron_error *err)
{
	return discovery_start(self);
}

static int32_t process_update(void *self, const struct andiron_value *args,
			      struct andiron_error *err)
{
	const struct discovery_config config = options_config(args);

	discovery_update(self, &config);
	return 0;
}

static void process_stop(void *self)
{
	discovery_stop(self);
}

static void process_destroy(void *self)
{
	discovery_free(self);
}

static void process_targets(void *self, const char *port, const struct andiron_targets *update)
{
	discovery_join(self, update);
}

static void process_metrics(void *self, const struct andiron_metric_sink *sink)
{
	static const struct abi_metric_row rows[] = {
		{"andiron_discovery_process_known", ABI_GAUGE(struct discovery_totals, processes),
		 "Processes known, with kernel threads."},
		{"andiron_discovery_process_targets", ABI_GAUGE(struct discovery_totals, targets),
		 "Processes that are targets."},
		{"andiron_discovery_process_reads_total",
		 ABI_COUNTER(struct discovery_totals, reads),
		 "How often a process's files were read."},
	};
	struct discovery_totals totals;

	discovery_totals(self, &totals);
	abi_metrics(sink, rows, sizeof(rows) / sizeof(*rows), &totals);
}

static const char *const process_needs[] = {ANDIRON_PROCESS_EVENTS_ID, NULL};
static const char *const process_capabilities[] = {"CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH", NULL};
static const struct andiron_export process_exports[] = {
	{.name = "targets", .type = ANDIRON_EXPORT_TARGETS, .doc = "One target per process."},
};

static const struct andiron_component process = {
	.size = sizeof(process),
	.name = "discovery.process",
	.summary = "Finds the processes of this host as they begin.",
	.options = &process_options,
	.exports = process_exports,
	.n_exports = sizeof(process_exports) / sizeof(*process_exports),
	.needs = process_needs,
	.capabilities = process_capabilities,
	.create = process_create,
	.start = process_start,
	.update = process_update,
	.stop = process_stop,
	.destroy = process_destroy,
	.targets = process_targets,
	.metrics = process_metrics,
};

ANDIRON_PLUGIN("process", ANDIRON_VERSION, "Apache-2.0", &events, &process);

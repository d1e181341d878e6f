/* SPDX-License-Identifier: Apache-2.0 */
/* andiron-process.so: process.events, the service that traces processes, and discovery.process,
 * which makes targets of them. */
#include "abi/metrics.h"
#include "abi/option.h"
#include "abi/value.h"
#include "base/clock.h"
#include "process/discovery.h"
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
	.start = service_start,
	.stop = service_stop,
	.destroy = service_free,
	.metrics = events_metrics,
	.extension = events_extension,
};

/* Names, types and defaults are Alloy's: those of its code, where its documentation differs. */
static const struct andiron_option discover_items[] = {
	OPTION(BOOL, "exe", "true", "Adds __meta_process_exe, the path of the program."),
	OPTION(BOOL, "cwd", "true", "Adds __meta_process_cwd, the working directory."),
	OPTION(BOOL, "commandline", "true",
	       "Adds __meta_process_commandline, the arguments and their program, separated by "
	       "blanks."),
	OPTION(BOOL, "uid", "false", "Adds __meta_process_uid, the real user id."),
	OPTION(BOOL, "username", "false",
	       "Adds __meta_process_username, by the host's passwd file."),
	OPTION(BOOL, "cgroup_path", "false",
	       "Adds __meta_process_cgroup_path, the lines of /proc/PID/cgroup joined by |."),
	OPTION(BOOL, "container_id", "true", "Adds __container_id__, by which `join` pairs."),
};

static const struct andiron_options discover_block = ANDIRON_OPTIONS(discover_items);

static const struct andiron_option items[] = {
	OPTION(TARGETS, "join", NULL,
	       "Targets of containers; a process gets the labels of its container's."),
	OPTION(DURATION, "refresh_interval", "\"60s\"",
	       "How often /proc is read as a whole. Processes are seen as they begin all the "
	       "same; this finds what makes no event, as a move to another cgroup. Less than 15s "
	       "counts only where the kernel gives no events.",
	       .min = 1, .max = INT64_MAX),
	OPTION(BLOCK, "discover_config", NULL,
	       "Which labels a process gets, besides __process_pid__, __meta_process_comm and "
	       "__meta_process_systemd_unit.",
	       .block = &discover_block),
};

static const struct andiron_options process_options = ANDIRON_OPTIONS(items);

static struct discovery_config config_of(const struct andiron_value *args)
{
	static const struct andiron_value none = {.kind = ANDIRON_VALUE_MAP};
	const struct andiron_value *block = value_get(args, "discover_config");
	const struct andiron_value *c = block ? block : &none;

	return (struct discovery_config){
		.refresh_ns = value_int(args, "refresh_interval", 60 * NS_PER_SEC),
		.choice = {
			.exe = value_bool(c, "exe", true),
			.cwd = value_bool(c, "cwd", true),
			.commandline = value_bool(c, "commandline", true),
			.container_id = value_bool(c, "container_id", true),
			.uid = value_bool(c, "uid", false),
			.username = value_bool(c, "username", false),
			.cgroup_path = value_bool(c, "cgroup_path", false),
		}};
}

static int32_t process_create(const struct andiron_host *host, uint64_t instance,
			      const struct andiron_value *args, void **ret_self,
			      struct andiron_error *err)
{
	const struct discovery_config config = config_of(args);
	struct discovery *d = discovery_new(host, instance, &config);
	static const char text[] = "no memory, or /proc cannot be opened";

	if (!d)
		return host->error_add(err, -ENOMEM, text, sizeof(text) - 1);
	*ret_self = d;
	return 0;
}

static int32_t process_update(void *self, const struct andiron_value *args,
			      struct andiron_error *err)
{
	const struct discovery_config config = config_of(args);

	discovery_update(self, &config);
	return 0;
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
	.start = discovery_start,
	.update = process_update,
	.stop = discovery_stop,
	.destroy = discovery_free,
	.targets = discovery_join,
	.metrics = process_metrics,
};

ANDIRON_PLUGIN("process", ANDIRON_VERSION, "Apache-2.0", &events, &process);

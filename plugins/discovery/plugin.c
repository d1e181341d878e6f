/* SPDX-License-Identifier: Apache-2.0 */
/* andiron-discovery.so: discovery.file, discovery.http, discovery.dns and local.file_match, which
 * are small and share how their targets are published; remote.http and import.http, which ask as
 * discovery.http does. */
#include "abi/metrics.h"
#include "client/loop.h"
#include "discovery/dns.h"
#include "discovery/file-match.h"
#include "discovery/files.h"
#include "discovery/options.h"
#include "discovery/remote.h"
#include "discovery/resolver.h"
#include "discovery/url.h"

#include <andiron/plugin.h>

#define ROWS(array) array, sizeof(array) / sizeof((array)[0])

static void file_metrics(void *self, const struct andiron_metric_sink *sink)
{
	static const struct abi_metric_row rows[] = {
		{"andiron_discovery_file_files", ABI_GAUGE(struct files_counts, files),
		 "Files that are known."},
		{"andiron_discovery_file_targets", ABI_GAUGE(struct files_counts, targets),
		 "Targets that are published."},
		{"andiron_discovery_file_reads_total", ABI_COUNTER(struct files_counts, reads),
		 "How often all files were read."},
		{"andiron_discovery_file_failures_total",
		 ABI_COUNTER(struct files_counts, failures),
		 "Files that could not be used, each time they were read."},
	};
	struct files_counts c = files_counts(self);

	abi_metrics(sink, ROWS(rows), &c);
}

static void http_metrics(void *self, const struct andiron_metric_sink *sink)
{
	static const struct abi_metric_row rows[] = {
		{"andiron_discovery_http_targets", ABI_GAUGE(struct url_counts, targets),
		 "Targets that are published."},
		{"andiron_discovery_http_reads_total", ABI_COUNTER(struct url_counts, reads),
		 "Answers that were used."},
		{"andiron_discovery_http_failures_total", ABI_COUNTER(struct url_counts, failures),
		 "Requests without a usable answer."},
	};
	struct url_counts c = url_counts(self);

	abi_metrics(sink, ROWS(rows), &c);
	client_loop_metrics(url_loop(self), sink);
}

static void dns_metrics(void *self, const struct andiron_metric_sink *sink)
{
	static const struct abi_metric_row rows[] = {
		{"andiron_discovery_dns_targets", ABI_GAUGE(struct dns_counts, targets),
		 "Targets that are published."},
		{"andiron_discovery_dns_lookups_total", ABI_COUNTER(struct dns_counts, lookups),
		 "Names looked up."},
		{"andiron_discovery_dns_failures_total", ABI_COUNTER(struct dns_counts, failures),
		 "Lookups without an answer."},
		{"andiron_sender_restarts_total", ABI_COUNTER(struct dns_counts, restarts),
		 "How often the process that speaks to servers was replaced."},
	};
	struct dns_counts c = dns_counts(self);

	abi_metrics(sink, ROWS(rows), &c);
}

static const struct andiron_export exports[] = {
	{"targets", ANDIRON_EXPORT_TARGETS, 0, "The targets that were found."},
};

static const struct andiron_component file = {
	.size = sizeof(file),
	.name = "discovery.file",
	.summary = "Reads targets from files, and again when these change.",
	.options = &file_options,
	.exports = exports,
	.n_exports = 1,
	.validate = file_check,
	.create = files_create,
	.start = files_start,
	.stop = files_stop,
	.destroy = files_free,
	.metrics = file_metrics,
};

static const struct andiron_component http = {
	.size = sizeof(http),
	.name = "discovery.http",
	.summary = "Asks a URL for targets.",
	.options = &http_options,
	.exports = exports,
	.n_exports = 1,
	.validate = http_check,
	.create = url_create,
	.start = url_start,
	.stop = url_stop,
	.destroy = url_free,
	.metrics = http_metrics,
	.sender = client_serve,
};

static const struct andiron_component dns = {
	.size = sizeof(dns),
	.name = "discovery.dns",
	.summary = "Makes targets of the records of DNS names.",
	.options = &dns_options,
	.exports = exports,
	.n_exports = 1,
	.validate = dns_check,
	.create = dns_create,
	.start = dns_start,
	.stop = dns_stop,
	.destroy = dns_free,
	.metrics = dns_metrics,
	.sender = resolver_serve,
};

static void file_match_metrics(void *self, const struct andiron_metric_sink *sink)
{
	static const struct abi_metric_row rows[] = {
		{"andiron_file_match_targets", ABI_GAUGE(struct file_match_counts, targets),
		 "Targets that are published."},
		{"andiron_file_match_searches_total",
		 ABI_COUNTER(struct file_match_counts, searches),
		 "How often files were looked for."},
		{"andiron_file_match_entries_total",
		 ABI_COUNTER(struct file_match_counts, entries),
		 "Entries of folders that were looked at."},
	};
	struct file_match_counts c = file_match_counts(self);

	abi_metrics(sink, ROWS(rows), &c);
}

static const struct andiron_component file_match = {
	.size = sizeof(file_match),
	.name = "local.file_match",
	.summary = "Makes targets of the files that patterns name.",
	.options = &file_match_options,
	.exports = exports,
	.n_exports = 1,
	.create = file_match_create,
	.start = file_match_start,
	.stop = file_match_stop,
	.destroy = file_match_free,
	.targets = file_match_targets,
	.metrics = file_match_metrics,
};

static const struct andiron_export content[] = {
	{"content", ANDIRON_EXPORT_VALUE, 0, "The answer, without white space around it."},
};

static const struct andiron_component remote = {
	.size = sizeof(remote),
	.name = "remote.http",
	.summary = "Asks a URL for a value.",
	.options = &remote_options,
	.exports = content,
	.n_exports = 1,
	.needs = (const char *const[]){ANDIRON_VALUES_ID, NULL},
	.validate = remote_check,
	.create = remote_create,
	.start = remote_start,
	.stop = remote_stop,
	.destroy = remote_free,
	.metrics = remote_metrics,
	.sender = client_serve,
};

/* The host makes a module of what it supplies, and lets nobody else name it. */
static const struct andiron_component import = {
	.size = sizeof(import),
	.name = "import.http",
	.summary = "Asks a URL for a module, whose custom components are named LABEL.NAME.",
	.options = &import_options,
	.exports = content,
	.n_exports = 1,
	.needs = (const char *const[]){ANDIRON_VALUES_ID, NULL},
	.validate = remote_check,
	.create = remote_create,
	.start = remote_start,
	.stop = remote_stop,
	.destroy = remote_free,
	.metrics = remote_metrics,
	.sender = client_serve,
};

ANDIRON_PLUGIN("discovery", ANDIRON_VERSION, "Apache-2.0", &file, &http, &dns, &file_match, &remote,
	       &import);

/* SPDX-License-Identifier: Apache-2.0 */
/* andiron-docker.so: discovery.docker and discovery.dockerswarm. Their options, which are Alloy's
 * and one of ours each, and their metrics; discovery.c and swarm.c run them. */
#include "abi/metrics.h"
#include "base/clock.h"
#include "client/loop.h"
#include "client/options.h"
#include "docker/discovery.h"
#include "docker/settings.h"
#include "docker/swarm.h"

#include <andiron/plugin.h>

static const struct andiron_option filter[] = {
	OPTION(STRING, "name", NULL, "What to filter by, as --filter of docker's lists takes it.",
	       .flags = ANDIRON_OPTION_REQUIRED),
	OPTION(STRINGS, "values", NULL,
	       "Values, of which what is listed must have one; of the filter \"label\" all.",
	       .flags = ANDIRON_OPTION_REQUIRED),
};
static const struct andiron_options filter_table = ANDIRON_OPTIONS(filter);

#define HOST_OPTION(whose)                                                                         \
	OPTION(STRING, "host", NULL,                                                               \
	       "Address of " whose ": unix:///var/run/docker.sock, tcp://HOST:2375, or "           \
	       "https://HOST:2376.",                                                               \
	       .flags = ANDIRON_OPTION_REQUIRED)

static const struct andiron_option options[] = {
	HOST_OPTION("the engine"),
	OPTION(INT, "port", "80", "Port in the address of a container that has none.", .min = 0,
	       .max = UINT16_MAX),
	OPTION(STRING, "host_networking_host", "\"localhost\"",
	       "Address of a container that has the host's network."),
	OPTION(DURATION, "refresh_interval", "\"1m\"",
	       "How often all containers are listed. Changes are seen at once by events; less than "
	       "1m counts only where the engine gives none.",
	       .min = NS_PER_SEC, .max = INT64_MAX),
	OPTION(BOOL, "match_first_network", "true",
	       "Whether a container in several networks has targets in the first of them by name "
	       "only."),
	OPTION(BOOL, "containers_without_network", "false",
	       "Whether a container in no network is a target, too, without an __address__."),
	OPTION(BLOCK, "filter", NULL, "Which containers the engine is asked for.",
	       .flags = ANDIRON_OPTION_REPEATED, .block = &filter_table),
	CLIENT_OPTIONS,
};
static const struct andiron_options docker_options = ANDIRON_OPTIONS(options);

static const struct andiron_option of_swarm[] = {
	HOST_OPTION("a manager's engine"),
	OPTION(STRING, "role", NULL, "What becomes targets: services, tasks or nodes.",
	       .flags = ANDIRON_OPTION_REQUIRED, .choices = swarm_role_names),
	OPTION(INT, "port", "80",
	       "Port in the address of a node, and of a service or task that publishes none.",
	       .min = 0, .max = UINT16_MAX),
	OPTION(DURATION, "refresh_interval", "\"1m\"",
	       "How often the swarm is listed. Events have it listed besides.", .min = NS_PER_SEC,
	       .max = INT64_MAX),
	OPTION(BOOL, "tasks_without_network", "false",
	       "Whether a task without an address is a target, too, without an __address__."),
	OPTION(BLOCK, "filter", NULL, "Which services, tasks or nodes the engine is asked for.",
	       .flags = ANDIRON_OPTION_REPEATED, .block = &filter_table),
	CLIENT_OPTIONS,
};
static const struct andiron_options swarm_options = ANDIRON_OPTIONS(of_swarm);

static void metrics(void *self, const struct andiron_metric_sink *sink)
{
#define COUNT(member) ABI_COUNTER(struct discovery_counts, member)
#define GAUGE(member) ABI_GAUGE(struct discovery_counts, member)
	static const struct abi_metric_row rows[] = {
		{"andiron_docker_containers", GAUGE(containers), "Containers that are known."},
		{"andiron_docker_targets", GAUGE(targets), "Targets that are published."},
		{"andiron_docker_events_total", COUNT(events), "Events of the engine."},
		{"andiron_docker_lists_total", COUNT(lists), "Requests for all containers."},
		{"andiron_docker_updates_total", COUNT(updates), "Updates of the targets."},
		{"andiron_docker_failures_total", COUNT(failures),
		 "Lists that failed, and streams of events that ended."},
		{"andiron_docker_received_bytes_total", COUNT(received_bytes),
		 "Bytes of lists and events."},
	};
	struct discovery_counts c = discovery_counts(self);

	abi_metrics(sink, rows, sizeof(rows) / sizeof(*rows), &c);
	client_loop_metrics(discovery_loop(self), sink);
}

static void swarm_metrics(void *self, const struct andiron_metric_sink *sink)
{
#define SWARM_COUNT(member) ABI_COUNTER(struct swarm_counts, member)
#define SWARM_GAUGE(member) ABI_GAUGE(struct swarm_counts, member)
	static const struct abi_metric_row rows[] = {
		{"andiron_dockerswarm_objects", SWARM_GAUGE(objects),
		 "Services, tasks or nodes that are known."},
		{"andiron_dockerswarm_targets", SWARM_GAUGE(targets),
		 "Targets that are published."},
		{"andiron_dockerswarm_events_total", SWARM_COUNT(events), "Events of the engine."},
		{"andiron_dockerswarm_rounds_total", SWARM_COUNT(rounds),
		 "How often the swarm was listed."},
		{"andiron_dockerswarm_updates_total", SWARM_COUNT(updates),
		 "Updates of the targets."},
		{"andiron_dockerswarm_failures_total", SWARM_COUNT(failures),
		 "Rounds that failed, and streams of events that ended."},
		{"andiron_dockerswarm_received_bytes_total", SWARM_COUNT(received_bytes),
		 "Bytes of lists and events."},
	};
	struct swarm_counts c = swarm_counts(self);

	abi_metrics(sink, rows, sizeof(rows) / sizeof(*rows), &c);
	client_loop_metrics(swarm_loop(self), sink);
}

static const struct andiron_export exports[] = {
	{"targets", ANDIRON_EXPORT_TARGETS, 0, "A target for each port of what was found."},
};

static const struct andiron_component docker = {
	.size = sizeof(docker),
	.name = "discovery.docker",
	.summary = "Finds containers through the API of a Docker engine.",
	.options = &docker_options,
	.exports = exports,
	.n_exports = 1,
	.validate = settings_check,
	.create = discovery_create,
	.start = discovery_start,
	.stop = discovery_stop,
	.destroy = discovery_free,
	.metrics = metrics,
	.sender = client_serve,
};

static const struct andiron_component swarm = {
	.size = sizeof(swarm),
	.name = "discovery.dockerswarm",
	.summary = "Finds services, tasks or nodes through the API of a swarm's manager.",
	.options = &swarm_options,
	.exports = exports,
	.n_exports = 1,
	.validate = settings_check,
	.create = swarm_create,
	.start = swarm_start,
	.stop = swarm_stop,
	.destroy = swarm_free,
	.metrics = swarm_metrics,
	.sender = client_serve,
};

ANDIRON_PLUGIN("docker", ANDIRON_VERSION, "Apache-2.0", &docker, &swarm);

/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in target-selector.h. Kubernetes' labels are read where they are; other discoveries'
 * targets have none. */
#include "abi/target-selector.h"

struct str target_selector_label(const struct target_label *labels, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (str_is(labels[i].name, name))
			return labels[i].value;
	return STR_NULL;
}

/* The first value that is not empty. */
static struct str first_label(const struct target_label *labels, size_t n, const char *const *names)
{
	struct str value = STR_NULL;

	for (; *names && !value.n; names++)
		value = target_selector_label(labels, n, *names);
	return value;
}

static bool is_one_of(struct str name, const char *const *names)
{
	while (*names && !str_is(name, *names))
		names++;
	return *names;
}

#define PID       "__process_pid__"
#define PHASE     "__meta_kubernetes_pod_phase"
#define NODE      "__meta_kubernetes_pod_node_name"
#define NAMESPACE "__meta_kubernetes_namespace"
#define NAME      "__meta_kubernetes_pod_container_name"

static const char *const ids[] = {
	"__container_id__",
	"__meta_kubernetes_pod_container_id",
	"__meta_docker_container_id",
	"__meta_dockerswarm_task_container_id",
	NULL,
};
/* Of services: before a pod's container, and behind it. */
static const char *const given_names[] = {
	"service_name",
	"__meta_kubernetes_pod_annotation_pyroscope_io_service_name",
	NULL,
};
static const char *const later_names[] = {
	"__meta_docker_container_name",
	"__meta_dockerswarm_container_label_service_name",
	"__meta_dockerswarm_service_name",
	NULL,
};

bool target_selector_reads(struct str label)
{
	return is_one_of(label, ids) || str_is(label, PID) || str_is(label, PHASE) ||
	       str_is(label, NODE) || str_is(label, NAME);
}

static struct str container_of_target(const struct target_label *labels, size_t n)
{
	struct str id = first_label(labels, n, ids);
	size_t at = str_search(id, STR("://"));

	return at < id.n ? str_skip(id, at + 3) : id;
}

struct target_selector target_selector_of(const struct target_label *labels, size_t n)
{
	uint64_t pid;

	if (str_u64(target_selector_label(labels, n, PID), &pid) && pid > 0 && pid <= INT32_MAX)
		return (struct target_selector){.pid = (uint32_t)pid};
	return (struct target_selector){.container = container_of_target(labels, n)};
}

const char *target_selector_absent(const struct target_label *labels, size_t n, const char *node)
{
	struct str phase = target_selector_label(labels, n, PHASE);
	struct str runs_on = target_selector_label(labels, n, NODE);
	struct str name = target_selector_label(labels, n, NAME);
	struct target_selector selector = target_selector_of(labels, n);

	if (selector.pid)
		return NULL;
	if (str_is(phase, "Succeeded") || str_is(phase, "Failed"))
		return "its pod has ended (__meta_kubernetes_pod_phase)";
	if (node && *node && runs_on.n && !str_is(runs_on, node))
		return "its pod runs on another node (__meta_kubernetes_pod_node_name)";
	if (selector.container.n)
		return NULL;
	if (name.n)
		return "its pod's status has no id for this container yet: it has not been started";
	return "it has neither __process_pid__ nor a container's id";
}

bool target_service_reads(struct str label)
{
	return is_one_of(label, given_names) || str_is(label, NAMESPACE) || str_is(label, NAME) ||
	       is_one_of(label, later_names);
}

struct str target_service_name(struct arena *arena, const char *prefix,
			       const struct target_label *labels, size_t n)
{
	struct str name = first_label(labels, n, given_names);
	struct str namespace = target_selector_label(labels, n, NAMESPACE);
	struct str container = target_selector_label(labels, n, NAME);

	if (name.n)
		return name;
	if (namespace.n && container.n)
		return str_of(arena_printf(arena, "%s%.*s/%.*s", prefix, STR_FMT(namespace),
					   STR_FMT(container)));
	name = first_label(labels, n, later_names);
	return name.n ? name : STR("unspecified");
}

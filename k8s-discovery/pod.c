/* SPDX-License-Identifier: Apache-2.0 */
/* Pods to targets. Contract in pod.h. */
#include "pod.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>

/* The labels of one target while they are collected; pod-wide ones stay in
 * front and each target's own are cut off again. */
struct collector {
	struct pod *pod;
	VEC(struct target_label) labels;
	bool failed;
};

static struct str string_at(const json_t *object, const char *name)
{
	const json_t *s = json_object_get(object, name);

	return s && json_is_string(s) ? (struct str){json_string_value(s), json_string_length(s)}
				      : STR_NULL;
}

/* A label whose name is a constant. The value is copied. */
static void add(struct collector *c, const char *name, struct str value)
{
	struct str copy;

	if (value.n == 0 || c->failed)
		return;
	copy = arena_str(&c->pod->arena, value);
	if (!copy.p || !vec_push(&c->labels, ((struct target_label){str_of(name), copy})))
		c->failed = true;
}

/* prefix + name, every character (not byte) that a label name may not have
 * replaced by one underscore. */
static struct str sanitized(struct collector *c, const char *prefix, struct str name)
{
	size_t n = strlen(prefix);
	char *out = arena_alloc(&c->pod->arena, n + name.n + 1);

	if (!out) {
		c->failed = true;
		return STR_NULL;
	}
	memcpy(out, prefix, n);
	for (size_t i = 0; i < name.n; i++) {
		unsigned char b = (unsigned char)name.p[i];

		if ((b | 0x20) >= 'a' && (b | 0x20) <= 'z' && b < 0x80)
			out[n++] = (char)b;
		else if ((b >= '0' && b <= '9') || b == '_')
			out[n++] = (char)b;
		else if ((b & 0xc0) != 0x80)
			out[n++] = '_';
	}
	return (struct str){out, n};
}

static int by_key(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

/* A map of labels or annotations as PREFIX_x = value and PREFIXpresent_x =
 * "true", by ascending key, so that the last of colliding names wins. */
static void add_map(struct collector *c, const json_t *map, const char *prefix, const char *present)
{
	size_t n = json_object_size(map), i = 0;
	const char **keys = calloc(n + 1, sizeof(*keys)), *key;
	json_t *value;

	if (!keys) {
		c->failed = true;
		return;
	}
	/* jansson's iteration takes a non-const object and does not change it. */
	json_object_foreach((json_t *)(uintptr_t)map, key, value)
		keys[i++] = key;
	check(i == n);
	qsort(keys, n, sizeof(*keys), by_key);
	for (i = 0; i < n && !c->failed; i++) {
		struct str name = sanitized(c, prefix, str_of(keys[i]));
		struct str mark = sanitized(c, present, str_of(keys[i]));

		if (c->failed)
			break;
		add(c, name.p, string_at(map, keys[i]));
		add(c, mark.p, STR("true"));
	}
	free(keys);
}

static void add_controller(struct collector *c, const json_t *metadata)
{
	const json_t *owners = json_object_get(metadata, "ownerReferences"), *owner;
	size_t i;

	json_array_foreach(owners, i, owner)
	{
		if (!json_is_true(json_object_get(owner, "controller")))
			continue;
		add(c, "__meta_kubernetes_pod_controller_kind", string_at(owner, "kind"));
		add(c, "__meta_kubernetes_pod_controller_name", string_at(owner, "name"));
		return;
	}
}

static struct str readiness(const json_t *status)
{
	const json_t *conditions = json_object_get(status, "conditions"), *condition;
	size_t i;

	json_array_foreach(conditions, i, condition)
	{
		struct str value = string_at(condition, "status");

		if (!str_is(string_at(condition, "type"), "Ready"))
			continue;
		return str_is(value, "True") ? STR("true")
		       : str_is(value, "False") ? STR("false")
						: STR("unknown");
	}
	return STR("unknown");
}

static void add_pod(struct collector *c, const json_t *pod)
{
	const json_t *metadata = json_object_get(pod, "metadata");
	const json_t *spec = json_object_get(pod, "spec"), *status = json_object_get(pod, "status");

	add(c, "__meta_kubernetes_namespace", string_at(metadata, "namespace"));
	add(c, "__meta_kubernetes_pod_name", string_at(metadata, "name"));
	add(c, "__meta_kubernetes_pod_uid", string_at(metadata, "uid"));
	add(c, "__meta_kubernetes_pod_node_name", string_at(spec, "nodeName"));
	add(c, "__meta_kubernetes_pod_ip", string_at(status, "podIP"));
	add(c, "__meta_kubernetes_pod_host_ip", string_at(status, "hostIP"));
	add(c, "__meta_kubernetes_pod_phase", string_at(status, "phase"));
	add(c, "__meta_kubernetes_pod_ready", readiness(status));
	add_controller(c, metadata);
	add_map(c, json_object_get(metadata, "labels"), "__meta_kubernetes_pod_label_",
		"__meta_kubernetes_pod_labelpresent_");
	add_map(c, json_object_get(metadata, "annotations"), "__meta_kubernetes_pod_annotation_",
		"__meta_kubernetes_pod_annotationpresent_");
}

/* What has been collected becomes a target. */
static void finish_target(struct collector *c)
{
	struct target_label *labels;

	if (c->failed)
		return;
	labels = arena_array(&c->pod->arena, struct target_label, c->labels.n);
	if (!labels) {
		c->failed = true;
		return;
	}
	memcpy(labels, c->labels.p, c->labels.n * sizeof(*labels));
	if (!vec_push(&c->pod->targets, ((struct pod_target){labels, c->labels.n})))
		c->failed = true;
}

static void add_port(struct collector *c, struct str ip, const json_t *port)
{
	const json_t *number = json_object_get(port, "containerPort");
	size_t mark = c->labels.n;
	struct str protocol = string_at(port, "protocol");
	char text[24], address[96];

	snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(number));
	snprintf(address, sizeof(address), str_find(ip, ':') < ip.n ? "[%.*s]:%s" : "%.*s:%s",
		 STR_FMT(ip), text);
	add(c, "__address__", str_of(address));
	add(c, "__meta_kubernetes_pod_container_port_name", string_at(port, "name"));
	add(c, "__meta_kubernetes_pod_container_port_number", str_of(text));
	add(c, "__meta_kubernetes_pod_container_port_protocol", protocol.n ? protocol : STR("TCP"));
	finish_target(c);
	c->labels.n = mark;
}

static struct str container_id(const json_t *statuses, struct str name)
{
	const json_t *status;
	size_t i;

	json_array_foreach(statuses, i, status)
	{
		if (str_eq(string_at(status, "name"), name))
			return string_at(status, "containerID");
	}
	return STR_NULL;
}

static void add_containers(struct collector *c, const json_t *containers, const json_t *statuses,
			   struct str ip, bool init)
{
	const json_t *container, *port;
	size_t i, k;

	json_array_foreach(containers, i, container)
	{
		const json_t *ports = json_object_get(container, "ports");
		struct str name = string_at(container, "name");
		size_t mark = c->labels.n;

		add(c, "__meta_kubernetes_pod_container_name", name);
		add(c, "__meta_kubernetes_pod_container_image", string_at(container, "image"));
		add(c, "__meta_kubernetes_pod_container_init", init ? STR("true") : STR("false"));
		add(c, "__meta_kubernetes_pod_container_id", container_id(statuses, name));
		json_array_foreach(ports, k, port)
		{
			add_port(c, ip, port);
		}
		if (json_array_size(ports) == 0) {
			add(c, "__address__", ip);
			finish_target(c);
		}
		c->labels.n = mark;
	}
}

static int identify(const json_t *object, struct pod *pod)
{
	const json_t *metadata = json_object_get(object, "metadata");
	struct str space = string_at(metadata, "namespace"), name = string_at(metadata, "name");
	char *key;

	if (name.n == 0)
		return -EINVAL;
	key = arena_printf(&pod->arena, "%.*s/%.*s", STR_FMT(space), STR_FMT(name));
	pod->key = str_of(key);
	pod->resource_version = arena_str(&pod->arena, string_at(metadata, "resourceVersion"));
	return key && pod->resource_version.p ? 0 : -ENOMEM;
}

int pod_parse(const json_t *object, struct pod *ret)
{
	const json_t *spec = json_object_get(object, "spec");
	const json_t *status = json_object_get(object, "status");
	struct str ip = string_at(status, "podIP");
	struct pod pod = {0};
	struct collector c = {.pod = &pod};
	int r = identify(object, &pod);

	if (r == 0 && ip.n) {
		add_pod(&c, object);
		add_containers(&c, json_object_get(spec, "containers"),
			       json_object_get(status, "containerStatuses"), ip, false);
		add_containers(&c, json_object_get(spec, "initContainers"),
			       json_object_get(status, "initContainerStatuses"), ip, true);
		if (c.failed)
			r = -ENOMEM;
	}
	vec_free(&c.labels);
	if (r < 0)
		pod_fini(&pod);
	else
		*ret = pod;
	return r;
}

void pod_fini(struct pod *pod)
{
	vec_free(&pod->targets);
	arena_free(&pod->arena);
}

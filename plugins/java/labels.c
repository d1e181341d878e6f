/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in labels.h. A recording has several kinds of profiles and so no name: the server gives
 * each its own. */
#include "java/labels.h"

#include <errno.h>
#include <stdlib.h>

#define PID "__process_pid__"

/* A service's name, if no label says it: the first of these that is there. */
static const char *const names_of_service[] = {
	"__meta_docker_container_name",
	"__meta_dockerswarm_container_label_service_name",
	"__meta_dockerswarm_service_name",
};
#define POD_SERVICE   "__meta_kubernetes_pod_annotation_pyroscope_io_service_name"
#define POD_NAMESPACE "__meta_kubernetes_namespace"
#define POD_CONTAINER "__meta_kubernetes_pod_container_name"

bool labels_keeps(struct str name)
{
	if (!str_starts(name, STR("__")) || str_is(name, PID))
		return true;
	for (size_t i = 0; i < sizeof(names_of_service) / sizeof(*names_of_service); i++)
		if (str_is(name, names_of_service[i]))
			return true;
	return str_is(name, POD_SERVICE) || str_is(name, POD_NAMESPACE) ||
	       str_is(name, POD_CONTAINER);
}

static struct str service_of(struct arena *arena, const struct target_row *row)
{
	struct str name = target_label_value(row, POD_SERVICE);
	struct str namespace = target_label_value(row, POD_NAMESPACE);
	struct str container = target_label_value(row, POD_CONTAINER);

	if (name.n)
		return arena_str(arena, name);
	if (namespace.n && container.n)
		return str_of(arena_printf(arena, "java/%.*s/%.*s", STR_FMT(namespace),
					   STR_FMT(container)));
	for (size_t i = 0; i < sizeof(names_of_service) / sizeof(*names_of_service); i++) {
		name = target_label_value(row, names_of_service[i]);
		if (name.n)
			return arena_str(arena, name);
	}
	return STR("unspecified");
}

const struct target_label *labels_make(struct arena *arena, const struct target_row *row,
				       uint32_t *ret_n)
{
	struct target_label *labels = arena_array(arena, struct target_label, row->n_labels + 1u);
	uint32_t n = 0;

	for (uint32_t i = 0; labels && i < row->n_labels; i++) {
		const struct target_label *from = &row->labels[i];

		if (str_starts(from->name, STR("__")))
			continue;
		labels[n] = (struct target_label){arena_str(arena, from->name),
						  arena_str(arena, from->value)};
		if (!labels[n].name.p || !labels[n].value.p)
			return NULL;
		n++;
	}
	if (labels && !target_label_value(row, "service_name").n) {
		labels[n] = (struct target_label){STR("service_name"), service_of(arena, row)};
		if (!labels[n++].value.p)
			return NULL;
	}
	if (labels)
		qsort(labels, n, sizeof(*labels), target_label_compare);
	*ret_n = n;
	return labels;
}

int labels_pid(const struct target_row *row, uint32_t *ret, struct error *err)
{
	struct str text = target_label_value(row, PID);
	uint64_t pid;

	if (!text.n)
		return error_set(err, -EINVAL,
				 "the target has no " PID ", which discovery.process gives");
	if (!str_u64(text, &pid) || pid == 0 || pid > INT32_MAX)
		return error_set(err, -EINVAL, PID " is \"%.*s\", which is no process id",
				 STR_FMT(str_first(text, 40)));
	*ret = (uint32_t)pid;
	return 0;
}

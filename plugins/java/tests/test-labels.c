/* SPDX-License-Identifier: Apache-2.0 */
/* What a recording is labelled with, and which process a target is. */
#include "java/labels.h"

#include "testing/test.h"

#include <errno.h>

#define ROW(...)                                                                                   \
	{                                                                                          \
		.labels = (const struct target_label[]){__VA_ARGS__},                              \
		.n_labels = sizeof((const struct target_label[]){__VA_ARGS__}) /                   \
			    sizeof(struct target_label)                                            \
	}
#define LABEL(n, v)                                                                                \
	{                                                                                          \
		STR(n), STR(v)                                                                     \
	}

static void expect_service(const struct target_row *row, const char *name)
{
	struct arena arena = ARENA_NULL;
	uint32_t n = 0;
	const struct target_label *labels = labels_make(&arena, row, &n);

	expect(labels != NULL);
	for (uint32_t i = 0; i < n; i++) {
		expect(!str_starts(labels[i].name, STR("__")));
		expect(i == 0 || str_cmp(labels[i - 1].name, labels[i].name) < 0);
		if (str_is(labels[i].name, "service_name")) {
			expect_str(labels[i].value, name);
			name = NULL;
		}
	}
	expect(!name);
	arena_free(&arena);
}

/* In Alloy's order: its own label, the pod's annotation, namespace and container, Docker's. */
TEST(services_are_named_as_alloy_does)
{
	const struct target_row own = ROW(LABEL("a", "1"), LABEL("service_name", "mine"));
	const struct target_row pod =
		ROW(LABEL("__meta_kubernetes_namespace", "shop"),
		    LABEL("__meta_kubernetes_pod_annotation_pyroscope_io_service_name", "cart"),
		    LABEL("__meta_kubernetes_pod_container_name", "app"), LABEL("z", "1"));
	const struct target_row container =
		ROW(LABEL("__meta_kubernetes_namespace", "shop"),
		    LABEL("__meta_kubernetes_pod_container_name", "app"));
	const struct target_row docker = ROW(LABEL("__meta_docker_container_name", "/web"));
	const struct target_row none = ROW(LABEL("__process_pid__", "1"));

	expect_service(&own, "mine");
	expect_service(&pod, "cart");
	expect_service(&container, "java/shop/app");
	expect_service(&docker, "/web");
	expect_service(&none, "unspecified");
}

TEST(a_target_is_a_process)
{
	const struct target_row good = ROW(LABEL("__process_pid__", "42"));
	const struct target_row bad[] = {ROW(LABEL("a", "1")), ROW(LABEL("__process_pid__", "0")),
					 ROW(LABEL("__process_pid__", "-1")),
					 ROW(LABEL("__process_pid__", "12x")),
					 ROW(LABEL("__process_pid__", "99999999999"))};
	struct error err = ERROR_NULL;
	uint32_t pid = 0;

	expect_eq(labels_pid(&good, &pid, &err), 0);
	expect_eq(pid, 42);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		expect_eq(labels_pid(&bad[i], &pid, &err), -EINVAL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The component that offers a runtime: what it answers, and what it counts. */
#include "runtime-kit/service.h"

#include "testing/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ID ANDIRON_RUNTIME_PREFIX "test" ANDIRON_RUNTIME_SUFFIX

static int32_t find_extension(uint64_t instance, const char *id, struct andiron_extension *ret)
{
	if (strcmp(id, ANDIRON_OBJECTS_ID) != 0)
		return -ENOENT;
	*ret = (struct andiron_extension){&find_extension, NULL};
	return 0;
}

static const struct andiron_host host = {.size = sizeof(host), .extension = find_extension};

static struct runtime_service *make_service(void)
{
	static const struct andiron_runtime table = {.program = "test"};
	void *s = NULL;

	expect_eq(runtime_service_create(&host, 1, ID, &table, &s), 0);
	return s;
}

/* Whoever asks for something else gets nothing, as for the processes of targets. */
TEST(only_its_own_id_is_answered)
{
	struct runtime_service *s = make_service();

	expect(runtime_service_extension(s, ID) == &s->table);
	expect(runtime_service_extension(s, "andiron.target-processes/1") == NULL);
	expect_eq(s->table.size, sizeof(s->table));
	runtime_service_destroy(s);
}

static void take_metric(void *self, const struct andiron_metric *m)
{
	double *sum = self;

	expect_eq(m->n_labels, 1);
	expect_str(((struct str){m->labels->value.ptr, m->labels->value.len}), "test");
	*sum = *sum * 1000 + m->value;
}

static double metrics_of(struct runtime_service *s)
{
	double sum = 0;
	struct andiron_metric_sink sink = {.size = sizeof(sink), .self = &sum, .add = take_metric};

	runtime_service_metrics(s, &sink);
	return sum;
}

/* A map that the program has not is none. */
TEST(maps_are_found_by_name)
{
	const struct andiron_runtime_map maps[] = {{.name = "a", .fd = 7}, {.name = "b", .fd = 8}};

	expect_eq(runtime_map_of(maps, 2, "b"), 8);
	expect_eq(runtime_map_of(maps, 2, "c"), -1);
	expect_eq(runtime_map_of(maps, 0, "a"), -1);
}

/* Two samplers' sessions add up, and one that ends takes its own away. */
TEST(sessions_add_up)
{
	struct runtime_service *s = make_service();
	struct runtime_counts a = {0}, b = {0};

	runtime_service_count(s, &a, &(struct runtime_counts){1, 20, 3, 7});
	runtime_service_count(s, &b, &(struct runtime_counts){2, 30, 0, 1});
	expect_eq(metrics_of(s), 3050003008);
	runtime_service_count(s, &a, &(struct runtime_counts){4, 10, 5, 2});
	expect_eq(metrics_of(s), 6040005003);
	runtime_service_count(s, &a, &(struct runtime_counts){.names_evicted = 5});
	expect_eq(metrics_of(s), 2030005001);
	runtime_service_destroy(s);
}

static int use(void *context)
{
	static const struct andiron_runtime table = {.program = "test"};
	void *s = NULL;
	int r = runtime_service_create(&host, 1, ID, &table, &s);

	runtime_service_destroy(s);
	return r;
}

TEST(survives_out_of_memory)
{
	test_each_failing_allocation(use, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* CPU time by service and target, of batches that the tests build. */
#include "abi/batch-build.h"
#include "agents/kit/cpu-usage.h"
#include "base/buf.h"
#include "base/clock.h"
#include "testing/test.h"

#include <errno.h>
#include <stdlib.h>

#define LENGTH (10 * NS_PER_SEC)

/* Labels are "name=value", apart by ",", sorted. */
static void add_group(struct batch_builder *b, const char *labels, int64_t value, const char *type)
{
	struct andiron_profile_type t = {.period = 1};
	struct andiron_row row = {.value = value, .samples = 1};
	struct str rest = str_of(labels), one;
	uint32_t attributes[8], n = 0;

	while (rest.n > 0) {
		one = str_cut(&rest, ',');
		struct str key = str_cut(&one, '=');

		attributes[n++] = batch_add_str_attribute(b, key, one);
	}
	t.name = batch_add_string(b, str_of(type));
	t.type = batch_add_string(b, STR("cpu"));
	t.unit = batch_add_string(b, STR("nanoseconds"));
	row.type = batch_add_type(b, &t);
	batch_group_begin(b, attributes, n);
	batch_add_row(b, &row);
}

static const struct andiron_batch *finish(struct batch_builder *b, int64_t end_ns)
{
	const struct batch_head head = {.start_ns = end_ns - LENGTH, .end_ns = end_ns};
	const struct andiron_batch *batch = NULL;

	return batch_finish(b, &head, &batch) == 0 ? batch : NULL;
}

static void put(void *context, const struct cpu_usage_sum *sum)
{
	buf_printf(context, "%s|%s|%lld ", sum->service, sum->target, (long long)sum->cpu_ns);
	if (sum->interval_ns != LENGTH)
		buf_printf(context, "?");
}

/* What is reported of one batch with these groups of CPU time, each of `value`. */
static void expect_report(struct cpu_usage *u, int64_t end_ns, int64_t value,
			  const char *const *groups, const char *expected)
{
	struct batch_builder *b = batch_builder_new();
	struct buf text = BUF_NULL;
	const struct andiron_batch *batch;

	expect(b);
	for (; *groups; groups++)
		add_group(b, *groups, value, "process_cpu");
	batch = finish(b, end_ns);
	expect(batch);
	expect_eq(cpu_usage_add(u, batch, put, &text), 0);
	expect_str(buf_str(&text), expected);
	batch_release(batch);
	buf_free(&text);
}

/* A service has the sum of its targets; hidden labels tell no targets apart. */
TEST(sums_by_service_and_target)
{
	struct cpu_usage *u = cpu_usage_new(NULL, 0, 100);
	const char *const groups[] = {"__x=1,pod=a,service_name=s",
				      "pod=b,service_name=s",
				      "__y=1,service_name=t",
				      "pod=a,service_name=s",
				      "",
				      NULL};

	expect(u);
	expect_report(u, LENGTH, 3, groups, "s||9 s|pod=a|6 s|pod=b|3 t||3 unknown||3 ");
	expect_report(u, 2 * LENGTH, 3, groups, "s||18 s|pod=a|12 s|pod=b|6 t||6 unknown||6 ");
	cpu_usage_free(u);
}

/* With labels given, their values name the target. */
TEST(targets_by_chosen_labels)
{
	static char pod[] = "pod", container[] = "container";
	char *labels[] = {pod, container};
	struct cpu_usage *u = cpu_usage_new(labels, 2, 100);
	const char *const groups[] = {"container=c,node=n,pod=a/b,service_name=s",
				      "node=n,service_name=t", NULL};

	expect(u);
	expect_report(u, LENGTH, 1, groups, "s||1 s|a_b,c|1 t||1 ");
	cpu_usage_free(u);
}

/* What has no sample is reported again after an interval and a half, and forgotten in the end. */
TEST(idle_services_stay_and_go)
{
	struct cpu_usage *u = cpu_usage_new(NULL, 0, 100);
	const char *const both[] = {"service_name=s", "service_name=t", NULL};
	const char *const one[] = {"service_name=s", NULL}, *const none[] = {NULL};

	expect(u);
	expect_report(u, LENGTH, 1, both, "s||1 t||1 ");
	expect_report(u, 2 * LENGTH, 1, one, "s||2 ");
	expect_report(u, 3 * LENGTH, 1, one, "s||3 t||1 ");
	/* Another batch of the same time: counted, and said the next time. */
	expect_report(u, 3 * LENGTH, 1, one, "");
	expect_report(u, 4 * LENGTH, 1, one, "s||5 ");
	expect_report(u, 63 * LENGTH, 1, one, "s||6 ");
	expect_report(u, 200 * LENGTH, 1, none, "");
	expect_report(u, 201 * LENGTH, 1, both, "s||1 t||1 ");
	cpu_usage_free(u);
}

/* There are no more sums than allowed: a service counts for "other" then, a target for its service
 * only. */
TEST(sums_are_bounded)
{
	struct cpu_usage *u = cpu_usage_new(NULL, 0, 2);
	const char *const groups[] = {"pod=p,service_name=s", "pod=q,service_name=s",
				      "service_name=t", "service_name=v", NULL};

	expect(u);
	expect_report(u, LENGTH, 1, groups, "s||2 s|pod=p|1 other||2 ");
	expect_report(u, 2 * LENGTH, 1, groups, "s||4 s|pod=p|2 other||4 ");
	cpu_usage_free(u);
}

/* A name that collectd would cut off keeps its length and a mark of its own. */
TEST(long_names_stay_apart)
{
	struct cpu_usage *u = cpu_usage_new(NULL, 0, 100);
	char names[2][200], expected[400];
	const char *const groups[] = {names[0], names[1], NULL};

	expect(u);
	for (int i = 0; i < 2; i++)
		snprintf(names[i], sizeof(names[i]), "service_name=%0150d%c", 0, 'a' + i);
	snprintf(expected, sizeof(expected), "%0118d~c0051fb4||1 %0118d~c305246d||1 ", 0, 0);
	expect_report(u, LENGTH, 1, groups, expected);
	cpu_usage_free(u);
}

/* Only CPU time counts; a batch that is malformed is refused. */
TEST(other_profiles_are_passed_over)
{
	struct cpu_usage *u = cpu_usage_new(NULL, 0, 100);
	struct batch_builder *b = batch_builder_new();
	const struct andiron_batch *batch;
	struct andiron_batch broken;
	struct andiron_column column = {
		.id = ANDIRON_COL_ROW, .elem_size = 8, .segment = 9, .count = 1};
	struct buf text = BUF_NULL;

	expect(u && b);
	add_group(b, "service_name=s", 5, "memory");
	add_group(b, "service_name=t", 0, "process_cpu");
	batch = finish(b, LENGTH);
	expect(batch);
	expect_eq(cpu_usage_add(u, batch, put, &text), 0);
	broken = *batch;
	broken.columns = &column;
	broken.n_columns = 1;
	expect_eq(cpu_usage_add(u, &broken, put, &text), -EINVAL);
	expect_eq(text.n, 0);
	batch_release(batch);
	cpu_usage_free(u);
}

static void ignore(void *context, const struct cpu_usage_sum *sum)
{
}

static int add_once(void *context)
{
	struct cpu_usage *u = cpu_usage_new(NULL, 0, 100);
	int r = u ? cpu_usage_add(u, context, ignore, NULL) : -ENOMEM;

	cpu_usage_free(u);
	return r;
}

TEST(memory_runs_out)
{
	struct batch_builder *b = batch_builder_new();
	const struct andiron_batch *batch;

	expect(b);
	add_group(b, "pod=p,service_name=s", 5, "process_cpu");
	batch = finish(b, LENGTH);
	expect(batch);
	test_each_failing_allocation(add_once, (void *)(uintptr_t)batch);
	batch_release(batch);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Targets: what a list says, a table knows. */
#include "abi/target-selector.h"
#include "abi/target-list.h"
#include "base/hash.h"
#include "testing/test.h"

#include <errno.h>
#include <stdlib.h>

struct seen {
	int added, changed, removed;
};

static void count(void *context, int change, struct target_row *row)
{
	struct seen *s = context;

	(void)row;
	s->added += change == TARGET_ADDED;
	s->changed += change == TARGET_CHANGED;
	s->removed += change == TARGET_REMOVED;
}

static int set(struct target_list *list, uint64_t row, const char *name, const char *value)
{
	struct target_label l[] = {{str_of(name), str_of(value)}, {STR("z"), STR("1")}};

	return target_list_set(list, row, row, l, 2);
}

static int flush_into(struct target_list *list, struct target_table *table, struct seen *seen)
{
	const struct andiron_targets *u = NULL;
	int r = target_list_flush(list, &u);

	if (r < 0 || !u)
		return r;
	r = target_table_apply(table, u, count, seen);
	u->release(u->owner);
	return r;
}

/* Nothing is resent that did not change, and removing and setting again is one
 * change: consumers do work for every event. */
TEST(only_changes_travel)
{
	struct target_list *list = target_list_new(1);
	struct target_table *table = target_table_new();
	struct seen s = {0};

	set(list, 1, "a", "x");
	set(list, 2, "a", "y");
	expect_eq(flush_into(list, table, &s), 0);
	expect(s.added == 2 && s.changed == 0);
	set(list, 1, "a", "x");
	expect_eq(flush_into(list, table, &s), 0);
	expect(s.added == 2 && s.changed == 0);
	target_list_remove(list, 2);
	set(list, 2, "a", "w");
	target_list_remove(list, 1);
	set(list, 3, "a", "q");
	expect_eq(flush_into(list, table, &s), 0);
	expect(s.added == 3 && s.changed == 1 && s.removed == 1);
	expect_eq(target_table_count(table), 2);
	target_list_clear(list);
	expect_eq(flush_into(list, table, &s), 0);
	expect_eq(target_table_count(table), 0);
	target_list_free(list);
	target_table_free(table);
}

static void first_row(void *context, int change, struct target_row *row)
{
	(void)change;
	*(struct target_row **)context = row;
}

TEST(labels_are_sorted_unique_and_not_empty)
{
	struct target_label l[] = {{STR("b"), STR("1")}, {STR("a"), STR("2")},
				   {STR("b"), STR("3")}, {STR("c"), STR("")},
				   {STR("a"), STR("")},  {STR("b"), STR("4")}};
	struct target_list *list = target_list_new(7);
	struct target_table *table = target_table_new();
	struct target_row *row = NULL;
	struct seen s = {0};

	expect_eq(target_list_set(list, 9, 0, l, 6), 0);
	expect_eq(flush_into(list, table, &s), 0);
	target_table_each(table, first_row, &row);
	expect(row && row->n_labels == 1);
	expect_str(target_label_value(row, "b"), "4");
	expect_str(target_label_value(row, "a"), "");
	target_list_free(list);
	target_table_free(table);
}

/* A consumer that missed a generation must not build on it. */
TEST(a_gap_waits_for_the_next_snapshot)
{
	struct target_list *list = target_list_new(1);
	struct target_table *table = target_table_new();
	const struct andiron_targets *lost, *snapshot;
	struct seen s = {0};

	set(list, 1, "a", "x");
	expect_eq(flush_into(list, table, &s), 0);
	set(list, 2, "a", "x");
	expect_eq(target_list_flush(list, &lost), 0);
	lost->release(lost->owner);
	set(list, 3, "a", "x");
	expect_eq(flush_into(list, table, &s), -EAGAIN);
	expect_eq(target_table_count(table), 1);
	expect_eq(target_list_snapshot(list, &snapshot), 0);
	expect_eq(target_table_apply(table, snapshot, count, &s), 0);
	snapshot->release(snapshot->owner);
	expect_eq(target_table_count(table), 3);
	expect_eq(s.added, 3);
	target_list_free(list);
	target_table_free(table);
}

static int churn(void *context)
{
	struct target_list *list = target_list_new(1);
	struct target_table *table = target_table_new();
	struct seen s = {0};
	uint64_t state = 1;
	int r = list && table ? 0 : -ENOMEM;

	(void)context;
	for (int i = 0; i < 60 && r == 0; i++) {
		state = hash_u64(state);
		if (state & 1)
			r = set(list, state >> 8 & 15, "a", state & 2 ? "x" : "y");
		else
			target_list_remove(list, state >> 8 & 15);
		if (r == 0 && i % 7 == 0)
			r = flush_into(list, table, &s);
	}
	target_list_free(list);
	target_table_free(table);
	return r;
}

TEST(churn_survives_failing_allocations)
{
	test_each_failing_allocation(churn, NULL);
}

/* An update by a stranger with indices out of range is refused whole. */
TEST(broken_updates_are_refused)
{
	struct target_table *table = target_table_new();
	struct andiron_str strings[] = {{"", 0}, {"a", 1}};
	struct andiron_label label = {1, 2};
	struct andiron_target row = {.row = 1, .n_labels = 1};
	struct andiron_targets u = {.size = sizeof(u),
				    .flags = ANDIRON_TARGETS_SNAPSHOT,
				    .strings = strings,
				    .n_strings = 2,
				    .labels = &label,
				    .n_labels = 1,
				    .rows = &row,
				    .n_rows = 1,
				    .n_added = 1};
	struct seen s = {0};

	expect_eq(target_table_apply(table, &u, count, &s), -EINVAL);
	label.value = 1;
	row.n_labels = 2;
	expect_eq(target_table_apply(table, &u, count, &s), -EINVAL);
	row.n_labels = 1;
	expect_eq(target_table_apply(table, &u, count, &s), 0);
	target_table_free(table);
}

#define META "__meta_kubernetes_pod_"

/* Names and values alternate, NULL ends; up to 4. */
struct pairs {
	const char *p[9];
};

static size_t labels_of(struct pairs pairs, struct target_label *ret)
{
	size_t n = 0;

	for (; pairs.p[2 * n]; n++)
		ret[n] = (struct target_label){str_of(pairs.p[2 * n]), str_of(pairs.p[2 * n + 1])};
	return n;
}

/* A process before a container, the id without its runtime; what is no pid is none. */
TEST(stands_for)
{
	static const struct {
		struct pairs pairs;
		uint32_t pid;
		const char *container;
	} cases[] = {
		{{{"__process_pid__", "7", "__container_id__", "ab"}}, 7, ""},
		{{{"__process_pid__", "0", "__container_id__", "ab"}}, 0, "ab"},
		{{{"__process_pid__", "4294967296", META "container_id", "cri-o://cd"}}, 0, "cd"},
		{{{"__process_pid__", "-1"}}, 0, ""},
		{{{META "container_id", "containerd://"}}, 0, ""},
		{{{"__meta_docker_container_id", "ef", "a", "b"}}, 0, "ef"},
		{{{"a", "b"}}, 0, ""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct target_label labels[4];
		struct target_selector s =
			target_selector_of(labels, labels_of(cases[i].pairs, labels));

		expect_eq(s.pid, cases[i].pid);
		expect_str(s.container, cases[i].container);
	}
}

/* Labels tell why there is nobody, and say nothing where they cannot know. */
TEST(why_there_is_nobody)
{
	static const struct {
		struct pairs pairs;
		const char *words; /* NULL: they say nothing */
	} cases[] = {
		{{{"__process_pid__", "7", META "phase", "Failed"}}, NULL},
		{{{META "container_id", "x://ab", META "phase", "Running"}}, NULL},
		{{{META "container_id", "x://ab", META "node_name", "n1"}}, NULL},
		{{{META "container_id", "x://ab", META "node_name", "n2"}}, "another node"},
		{{{META "container_id", "x://ab", META "phase", "Succeeded"}}, "has ended"},
		{{{META "container_name", "app", META "phase", "Pending"}},
		 "no id for this container yet"},
		{{{"app", "web"}}, "neither"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct target_label labels[4];
		size_t n = labels_of(cases[i].pairs, labels);
		const char *why = target_selector_absent(labels, n, "n1");

		expect(cases[i].words ? why && strstr(why, cases[i].words) : !why);
		expect(target_selector_absent(labels, n, NULL) || !cases[i].words ||
		       strstr(cases[i].words, "node"));
	}
}

static bool is_a(struct str name)
{
	return str_is(name, "a");
}

/* What a consumer does not look at is not kept, and does not wake it. */
TEST(only_kept_labels_change)
{
	struct target_list *list = target_list_new(1);
	struct target_table *table = target_table_new_keeping(is_a);
	struct target_label l[] = {{STR("a"), STR("1")}, {STR("b"), STR("1")}};
	struct target_row *row = NULL;
	struct seen s = {0};

	expect_eq(target_list_set(list, 1, 1, l, 2), 0);
	expect_eq(flush_into(list, table, &s), 0);
	l[1].value = STR("2");
	expect_eq(target_list_set(list, 1, 1, l, 2), 0);
	expect_eq(flush_into(list, table, &s), 0);
	expect(s.added == 1 && s.changed == 0);
	target_table_each(table, first_row, &row);
	expect(row && row->n_labels == 1);
	l[0].value = STR("2");
	expect_eq(target_list_set(list, 1, 1, l, 2), 0);
	expect_eq(flush_into(list, table, &s), 0);
	expect_eq(s.changed, 1);
	target_list_free(list);
	target_table_free(table);
}

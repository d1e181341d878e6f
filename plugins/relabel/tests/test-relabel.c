/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of the incremental engine. */
#include "testing/test.h"
#include "relabel/relabel.h"

#include <errno.h>
#include <stdlib.h>

/* A producer, the engine, and a consumer's view of its output. */
struct bench {
	struct target_list *in[2];
	struct relabel *relabel;
	struct target_table *out;
	unsigned int added, changed, removed;
	uint64_t sent; /* rows of the last update */
};

static struct rules make_rules(const char *regex, const char *action)
{
	static const struct str source[] = {{"name", 4}};
	const struct rule_config c = {.action = str_of(action),
				      .source_labels = source,
				      .n_source_labels = 1,
				      .has_source_labels = true,
				      .separator = STR(";"),
				      .regex = str_of(regex),
				      .target_label = str_is(str_of(action), "replace") ? STR("out")
											: STR(""),
				      .replacement = STR("$1")};
	struct rules rules = {0};
	struct rule *rule = NULL;
	const char *option;

	expect_eq(rule_compile(&c, &rule, NULL, &option), 0);
	expect(vec_push(&rules, rule));
	return rules;
}

static void bench_init(struct bench *b, const char *regex, const char *action)
{
	struct rules rules = make_rules(regex, action);

	*b = (struct bench){.relabel = relabel_new(9), .out = target_table_new()};
	b->in[0] = target_list_new(1);
	b->in[1] = target_list_new(2);
	expect(b->in[0] && b->in[1] && b->relabel && b->out);
	relabel_set_rules(b->relabel, &rules);
}

static void bench_fini(struct bench *b)
{
	target_list_free(b->in[0]);
	target_list_free(b->in[1]);
	relabel_free(b->relabel);
	target_table_free(b->out);
}

static void count(void *context, int change, struct target_row *row)
{
	struct bench *b = context;

	b->added += change == TARGET_ADDED;
	b->changed += change == TARGET_CHANGED;
	b->removed += change == TARGET_REMOVED;
}

static void apply(struct bench *b, const struct andiron_targets *update)
{
	if (!update)
		return;
	expect_eq(relabel_apply(b->relabel, update), 0);
	update->release(update->owner);
}

static void flush(struct bench *b)
{
	const struct andiron_targets *update = NULL;

	expect_eq(relabel_flush(b->relabel, &update), 0);
	b->sent = update ? update->n_rows : 0;
	if (!update)
		return;
	expect_eq(target_table_apply(b->out, update, count, b), 0);
	update->release(update->owner);
}

/* Carries what changed through. */
static void pump(struct bench *b)
{
	const struct andiron_targets *update = NULL;

	b->added = b->changed = b->removed = 0;
	for (size_t i = 0; i < 2; i++) {
		expect_eq(target_list_flush(b->in[i], &update), 0);
		apply(b, update);
	}
	flush(b);
}

/* Says all again, as the host has it said when that is asked for. */
static void say_again(struct bench *b)
{
	const struct andiron_targets *update = NULL;

	b->added = b->changed = b->removed = 0;
	for (size_t i = 0; i < 2; i++) {
		expect_eq(target_list_snapshot(b->in[i], &update), 0);
		apply(b, update);
	}
	flush(b);
}

static void set(struct bench *b, size_t producer, uint64_t row, const char *name)
{
	const struct target_label labels[] = {{STR("name"), str_of(name)}};

	expect_eq(target_list_set(b->in[producer], row, row, labels, 1), 0);
}

static uint64_t evaluated(const struct bench *b)
{
	struct relabel_totals totals;

	relabel_totals(b->relabel, &totals);
	return totals.evaluated;
}

/* One changed target is worked on once and sends one row, whatever the number of others; one that
 * is said again as it was costs nothing, nor does one that goes. */
TEST(one_change_is_one_row)
{
	struct bench b;

	bench_init(&b, "(.*)", "replace");
	for (uint64_t i = 0; i < 1000; i++)
		set(&b, 0, i, "x");
	pump(&b);
	expect_eq(b.added, 1000);
	expect_eq(evaluated(&b), 1000);
	set(&b, 0, 500, "y");
	pump(&b);
	expect_eq(b.added + b.removed, 0);
	expect_eq(b.changed, 1);
	expect_eq(evaluated(&b), 1001);
	set(&b, 0, 500, "y");
	pump(&b);
	expect_eq(b.added + b.removed + b.changed, 0);
	target_list_remove(b.in[0], 7);
	pump(&b);
	expect_eq(b.removed, 1);
	expect_eq(evaluated(&b), 1001);
	bench_fini(&b);
}

/* A row that a rule drops is gone, comes back with its own id, and leaves for good with its input.
 */
TEST(dropped_and_back)
{
	struct relabel_totals totals;
	struct bench b;

	bench_init(&b, "bad", "drop");
	set(&b, 0, 1, "good");
	set(&b, 0, 2, "bad");
	pump(&b);
	expect_eq(b.added, 1);
	set(&b, 0, 1, "bad");
	set(&b, 0, 2, "good");
	pump(&b);
	expect_eq(b.added, 1);
	expect_eq(b.removed, 1);
	relabel_totals(b.relabel, &totals);
	expect_eq(totals.rows, 2);
	expect_eq(totals.kept, 1);
	target_list_remove(b.in[0], 2);
	pump(&b);
	expect_eq(b.removed, 1);
	expect_eq(target_table_count(b.out), 0);
	bench_fini(&b);
}

struct blame {
	char text[16];
	size_t n;
};

static void note_dropped(void *context, const struct target_row *row, size_t rule)
{
	struct blame *b = context;

	expect(b->n + 2 < sizeof(b->text));
	b->text[b->n++] = target_label_value(row, "name").p[0];
	b->text[b->n++] = (char)('0' + rule);
}

/* Of each target that is not in the output the rule that dropped it can be told, in the order of
 * the input, and where that rule stands. */
TEST(who_dropped_it)
{
	struct rules rules = make_rules("x", "drop"), more = make_rules("[ab]", "keep");
	const struct andiron_targets *update = NULL;
	struct blame blame = {.n = 0};
	struct bench b;

	expect(vec_push(&rules, more.p[0]));
	vec_free(&more);
	expect_eq(rule_set_place(rules.p[1], "c.alloy", 17), 0);
	bench_init(&b, "(.*)", "replace");
	relabel_set_rules(b.relabel, &rules);
	set(&b, 0, 1, "c");
	set(&b, 0, 2, "a");
	set(&b, 0, 3, "x");
	set(&b, 1, 1, "x");
	pump(&b);
	expect_eq(b.added, 1);
	for (size_t i = 0; i < 2; i++) {
		expect_eq(target_list_snapshot(b.in[i], &update), 0);
		expect_eq(relabel_each_dropped(b.relabel, update, note_dropped, &blame), 0);
		update->release(update->owner);
	}
	expect_str(str_of(blame.text), "c2x1x1");
	expect_str(str_of(rule_file(relabel_rule(b.relabel, 2))), "c.alloy");
	expect_eq(rule_line(relabel_rule(b.relabel, 2)), 17);
	bench_fini(&b);
}

struct order {
	char names[8];
	size_t n;
};

static void note(void *context, int change, struct target_row *row)
{
	struct order *o = context;

	expect(o->n < sizeof(o->names) - 1);
	o->names[o->n++] = target_label_value(row, "name").p[0];
}

/* Rows of two producers with the same ids stay apart, in the producers' order. */
TEST(two_producers)
{
	struct order order = {0};
	struct bench b;

	bench_init(&b, "(.*)", "replace");
	set(&b, 1, 1, "c");
	set(&b, 0, 2, "b");
	pump(&b);
	set(&b, 1, 2, "d");
	set(&b, 0, 1, "a");
	pump(&b);
	target_table_each(b.out, note, &order);
	expect_str(str_of(order.names), "abcd");
	target_list_clear(b.in[0]);
	pump(&b);
	expect_eq(b.removed, 2);
	expect_eq(target_table_count(b.out), 2);
	bench_fini(&b);
}

static void expect_put_right(void *context, int change, struct target_row *row)
{
	expect_eq(row->n_labels, 3);
	expect_str(target_label_value(row, "z"), "z");
	expect_str(target_label_value(row, "out"), "v");
}

/* New rules recompute what is there; rows whose labels stay as they were are not sent. */
TEST(new_rules)
{
	struct rules rules;
	struct bench b;

	bench_init(&b, "(.*)", "replace");
	set(&b, 0, 1, "a");
	set(&b, 0, 2, "b");
	pump(&b);
	rules = make_rules("a", "drop");
	relabel_set_rules(b.relabel, &rules);
	say_again(&b);
	expect_eq(b.removed, 1);
	expect_eq(b.changed, 1); /* "out" is gone */
	say_again(&b);
	expect_eq(b.sent, 0);
	bench_fini(&b);
}

/* For a consumer that begins late every row is sent again, once, and to one that has them all
 * nothing has changed. */
TEST(all_again)
{
	struct bench b;

	bench_init(&b, "bad", "drop");
	set(&b, 0, 1, "a");
	set(&b, 0, 2, "bad");
	set(&b, 1, 1, "b");
	pump(&b);
	relabel_resend(b.relabel);
	set(&b, 0, 1, "c"); /* before it is said again */
	pump(&b);
	expect_eq(b.sent, 1);
	say_again(&b);
	expect_eq(b.sent, 1);
	expect_eq(b.added + b.changed + b.removed, 0);
	say_again(&b);
	expect_eq(b.sent, 0);
	expect_eq(target_table_count(b.out), 2);
	bench_fini(&b);
}

/* A SNAPSHOT stands for all that its producer has, and touches nobody else's. */
TEST(a_snapshot_takes_away)
{
	const struct andiron_targets none = {.size = sizeof(none),
					     .flags = ANDIRON_TARGETS_SNAPSHOT,
					     .producer = 1,
					     .generation = 9};
	struct bench b;

	bench_init(&b, "(.*)", "replace");
	set(&b, 0, 1, "a");
	set(&b, 1, 1, "b");
	pump(&b);
	b.removed = 0;
	expect_eq(relabel_apply(b.relabel, &none), 0);
	flush(&b);
	expect_eq(b.removed, 1);
	expect_eq(target_table_count(b.out), 1);
	bench_fini(&b);
}

/* A producer that sorts nothing and says labels twice or empty is put right. */
TEST(labels_out_of_order)
{
	struct andiron_str strings[] = {{"", 0}, {"z", 1}, {"name", 4}, {"v", 1}};
	struct andiron_label labels[] = {{1, 3}, {2, 0}, {2, 3}, {1, 1}};
	struct andiron_target row = {.row = 1, .n_labels = 4};
	const struct andiron_targets odd = {.size = sizeof(odd),
					    .flags = ANDIRON_TARGETS_SNAPSHOT,
					    .producer = 1,
					    .generation = 1,
					    .strings = strings,
					    .n_strings = 4,
					    .labels = labels,
					    .n_labels = 4,
					    .rows = &row,
					    .n_rows = 1,
					    .n_added = 1};
	struct bench b;

	bench_init(&b, "(.*)", "replace");
	expect_eq(relabel_apply(b.relabel, &odd), 0);
	flush(&b);
	expect_eq(target_table_count(b.out), 1);
	target_table_each(b.out, expect_put_right, NULL);
	bench_fini(&b);
}

/* Rules that double the labels of a stranger's target lose that target, with a count, and cost no
 * more than the bounds. */
TEST(growth_is_bounded)
{
	struct relabel_totals totals;
	struct rules rules = {0};
	struct bench b;

	bench_init(&b, "(.*)", "replace");
	for (int i = 0; i < 40; i++) {
		const struct rule_config c = {.action = STR("labelmap"),
					      .separator = STR(";"),
					      .regex = STR("(.*)"),
					      .target_label = STR(""),
					      .replacement = i % 2 ? STR("a_$1") : STR("b_$1")};
		struct rule *rule = NULL;
		const char *option;

		expect_eq(rule_compile(&c, &rule, NULL, &option), 0);
		expect(vec_push(&rules, rule));
	}
	relabel_set_rules(b.relabel, &rules);
	set(&b, 0, 1, "x");
	pump(&b);
	relabel_totals(b.relabel, &totals);
	expect_eq(totals.kept, 0);
	expect_eq(totals.large, 1);
	bench_fini(&b);
}

/* One rule of each kind that allocates. */
static int make_all(struct rules *rules)
{
	static const struct str source[] = {{"name", 4}, {"x", 1}};
	static const struct {
		const char *action, *target;
	} kinds[] = {{"labelmap", ""}, {"uppercase", "out"}, {"replace", "out"}, {"labeldrop", ""}};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		const struct rule_config c = {.action = str_of(kinds[i].action),
					      .source_labels = source,
					      .n_source_labels = kinds[i].target[0] ? 2 : 0,
					      .separator = STR(";"),
					      .regex = STR("(.*)"),
					      .target_label = str_of(kinds[i].target),
					      .replacement = STR("$1")};
		struct rule *rule = NULL;
		const char *option;
		int r = rule_compile(&c, &rule, NULL, &option);

		if (!r && !vec_push(rules, rule)) {
			rule_free(rule);
			r = -ENOMEM;
		}
		if (r)
			return r;
	}
	return 0;
}

static void release(const struct andiron_targets *update)
{
	if (update)
		update->release(update->owner);
}

/* One target through the rules. Where memory was short, what comes after it stands for everything.
 */
static int carry(struct target_list *in, struct relabel *relabel, struct rules *rules)
{
	const struct target_label labels[] = {{STR("name"), STR("abc")}, {STR("x"), STR("y")}};
	const struct andiron_targets *update = NULL, *output = NULL;
	int r = target_list_set(in, 1, 1, labels, 2);

	relabel_set_rules(relabel, rules);
	if (!r)
		r = target_list_flush(in, &update);
	if (!r)
		r = relabel_apply(relabel, update);
	if (!r)
		r = relabel_flush(relabel, &output);
	if (output)
		expect_eq(output->flags & ANDIRON_TARGETS_SNAPSHOT, ANDIRON_TARGETS_SNAPSHOT);
	release(update);
	release(output);
	return r;
}

static int run_once(void *context)
{
	struct target_list *in = target_list_new(1);
	struct relabel *relabel = relabel_new(2);
	struct rules rules = {0};
	int r = in && relabel ? make_all(&rules) : -ENOMEM;

	if (!r)
		r = carry(in, relabel, &rules);
	rules_free(&rules);
	relabel_free(relabel);
	target_list_free(in);
	return r;
}

TEST(out_of_memory)
{
	test_each_failing_allocation(run_once, NULL);
}

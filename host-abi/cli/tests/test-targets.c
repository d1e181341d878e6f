/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of what `andiron targets` reads and shows. The verb itself is run by
 * tests/scenario/targets.py. */
#include "base/file.h"
#include "testing/test.h"
#include "cli/targets/discovery-plan.h"
#include "cli/targets/targets-file.h"
#include "cli/targets/process-match.h"
#include "cli/targets/target-listing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* A file with that text, targets_file_read of it, and the file gone. */
static int read_text(const char *text, size_t n, struct arena *arena,
		     const struct andiron_value **ret, struct error *err)
{
	char path[] = "/tmp/andiron-test-XXXXXX";
	int fd = mkstemp(path), r;

	expect(fd >= 0);
	expect_eq(write(fd, text, n), n);
	close(fd);
	r = targets_file_read(path, arena, ret, err);
	unlink(path);
	return r;
}

static const char good[] = "[{\"b\": \"2\", \"a\": \"1\"}, {}, {\"a\": \"x\\u0000y\"}]";

/* Order, duplicates and odd characters are kept. */
TEST(reads_targets)
{
	struct arena arena = ARENA_NULL;
	const struct andiron_value *list = NULL;

	expect_eq(read_text(good, strlen(good), &arena, &list, NULL), 0);
	expect_eq(list->n_items, 3);
	expect_eq(list->items[0].n_items, 2);
	expect(memcmp(list->items[0].keys[0].ptr, "b", 1) == 0);
	expect_eq(list->items[1].n_items, 0);
	expect_eq(list->items[2].items[0].string.len, 3);
	arena_free(&arena);
}

/* Any damage to a good text gives targets or an error with a text. */
TEST(damaged_texts)
{
	char text[sizeof(good)];

	srand(9);
	for (int round = 0; round < 2000; round++) {
		struct arena arena = ARENA_NULL;
		const struct andiron_value *list = NULL;
		struct error err = ERROR_NULL;
		size_t n = (size_t)rand() % sizeof(good);

		memcpy(text, good, sizeof(good));
		for (int k = rand() % 3; k > 0; k--)
			text[(size_t)rand() % sizeof(good)] = (char)rand();
		if (read_text(text, n, &arena, &list, &err))
			expect(err.code < 0 && err.text[0]);
		else
			expect(list->kind == ANDIRON_VALUE_LIST);
		arena_free(&arena);
	}
}

static int see(void *context)
{
	const struct target_label labels[] = {{STR("__process_pid__"), STR("1")},
					      {STR("a"), STR("\x1b\xff")}};
	const struct target_row row = {.labels = labels, .n_labels = 2};
	const struct andiron_kv kv = {{"k", 1}, {"v", 1}};
	const struct andiron_dropped_target dropped = {
		.labels = &kv, .n_labels = 1, .file = "c.alloy", .line = 3, .rule = 2};
	const struct andiron_dropped_target large = {
		.labels = &kv, .n_labels = 1, .reason = {"too large", 9}};
	struct target_listing s = {.failed = false};
	struct buf *out = context;
	int r;

	target_listing_begin(&s, "discovery.relabel.x");
	target_listing_add_row(&s, &row);
	target_listing_add_dropped(&s, &dropped);
	target_listing_add_dropped(&s, &large);
	target_listing_begin(&s, "other");
	r = s.failed ? -ENOMEM : target_listing_match(&s);
	buf_clear(out);
	if (!r)
		target_listing_json(&s, NULL, out);
	if (!r)
		target_listing_text(&s, "discovery.relabel.x", out);
	if (!r && (s.failed || out->failed))
		r = -ENOMEM;
	target_listing_free(&s);
	return r;
}

/* What was seen is shown whole, in both forms, and without control characters. */
TEST(shows_all)
{
	static const char *const words[] = {
		"\"rule\": 2, \"at\": \"c.alloy:3\"",
		"\"rule\": 0, \"reason\": \"too large\"",
		"\"other\": {",
		"\"processes\": [{\"pid\": 1, \"name\": \"",
		"discovery.relabel.x: 1 target, 2 dropped",
		"matches 1 process: 1 (",
		"dropped by rule 2 at c.alloy:3",
		"dropped: too large",
		"a = \"\\x1b\\xff\"",
	};
	struct buf out = BUF_NULL;

	expect_eq(see(&out), 0);
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (str_search(buf_str(&out), str_of(words[i])) == out.n)
			test_fail(__FILE__, __LINE__, "no %s in\n%.*s", words[i],
				  STR_FMT(buf_str(&out)));
	expect_eq(str_find(buf_str(&out), '\x1b'), out.n);
	buf_free(&out);
}

TEST(out_of_memory)
{
	struct buf out = BUF_NULL;

	test_each_failing_allocation(see, &out);
	buf_free(&out);
}

static int read_good(void *context)
{
	struct arena arena = ARENA_NULL;
	const struct andiron_value *list = NULL;
	int r = targets_file_read(context, &arena, &list, NULL);

	arena_free(&arena);
	return r;
}

TEST(reading_out_of_memory)
{
	char path[] = "/tmp/andiron-test-XXXXXX";
	int fd = mkstemp(path);

	expect(fd >= 0);
	expect_eq(write(fd, good, strlen(good)), strlen(good));
	close(fd);
	test_each_failing_allocation(read_good, path);
	unlink(path);
}

/* A plan of four: source → rules → more, and a sampler behind it that needs a service; a list that
 * is written out goes to the rules as well. */
static const struct andiron_export targets_export[] = {{"targets", ANDIRON_EXPORT_TARGETS, 0, ""}};
static const struct andiron_component finder = {
	.size = sizeof(finder), .name = "test.find", .exports = targets_export, .n_exports = 1};
static const struct andiron_component sampler = {.size = sizeof(sampler), .name = "test.sample"};
static const struct andiron_component service = {
	.size = sizeof(service), .name = "test.service", .flags = ANDIRON_COMPONENT_SERVICE};

static bool add_targets_edge(struct plan *plan, uint32_t from, uint32_t to, uint32_t order)
{
	return vec_push(&plan->edges, ((struct plan_edge){.from = from,
							  .to = to,
							  .kind = PLAN_TARGETS,
							  .order = order,
							  .export_name = "targets",
							  .port = "targets"}));
}

static struct plan *make_plan(void)
{
	static const struct registered_component found = {&finder, NULL},
						 sampling = {&sampler, NULL},
						 serving = {&service, NULL};
	static const struct andiron_value list = {.kind = ANDIRON_VALUE_LIST};
	static const struct plan_node nodes[] = {{.id = "source", .registered = &found},
						 {.id = "rules", .registered = &found},
						 {.id = "more", .registered = &found},
						 {.id = "sampler", .registered = &sampling},
						 {.id = "service", .registered = &serving}};
	struct plan *plan = calloc(1, sizeof(*plan));
	bool ok = plan;

	for (size_t i = 0; ok && i < sizeof(nodes) / sizeof(*nodes); i++)
		ok = vec_push(&plan->nodes, nodes[i]);
	ok = ok && add_targets_edge(plan, 0, 1, 0) && add_targets_edge(plan, 1, 2, 0) &&
	     add_targets_edge(plan, 2, 3, 0) &&
	     vec_push(&plan->literals, ((struct plan_literal){1, 1, "targets", &list}));
	if (ok)
		return plan;
	plan_free(plan);
	return NULL;
}

/* The ids of what runs and what is shown, in order. */
static void expect_cut(const char *only, const char *from, const char *runs, const char *shown)
{
	struct texts texts = {0};
	struct plan *plan = make_plan();
	struct discovery_plan d;
	struct buf out = BUF_NULL;
	struct error err = ERROR_NULL;

	expect(plan && (!from || vec_push(&texts, from)));
	if (discovery_plan_cut(plan, only, &texts, &d, &err))
		test_fail(__FILE__, __LINE__, "%s", err.text);
	vec_each (&plan->nodes, node)
		buf_printf(&out, "%s ", node->id);
	expect_str(buf_str(&out), runs);
	buf_clear(&out);
	vec_each (&d.components, c)
		buf_printf(&out, "%s%s ", c->given ? "=" : "", c->id);
	expect_str(buf_str(&out), shown);
	vec_each (&plan->edges, edge)
		expect(edge->from < edge->to && edge->to < plan->nodes.n);
	for (size_t i = 1; i < plan->literals.n; i++)
		expect(plan->literals.p[i].order != plan->literals.p[i - 1].order);
	buf_free(&out);
	vec_free(&texts);
	discovery_plan_fini(&d);
	plan_free(plan);
}

static void expect_uncut(const char *only, const char *from, const char *words)
{
	struct texts texts = {0};
	struct plan *plan = make_plan();
	struct discovery_plan d;
	struct error err = ERROR_NULL;

	expect(plan && (!from || vec_push(&texts, from)));
	expect(discovery_plan_cut(plan, only, &texts, &d, &err) < 0);
	if (str_search(str_of(err.text), str_of(words)) == strlen(err.text))
		test_fail(__FILE__, __LINE__, "no \"%s\" in \"%s\"", words, err.text);
	vec_free(&texts);
	plan_free(plan);
}

static char given_path[] = "/tmp/andiron-test-XXXXXX", given_source[64], given_rules[64];

static void make_given(void)
{
	int fd = mkstemp(given_path);

	expect(fd >= 0);
	expect_eq(write(fd, good, strlen(good)), strlen(good));
	close(fd);
	snprintf(given_source, sizeof(given_source), "source=%s", given_path);
	snprintf(given_rules, sizeof(given_rules), "rules=%s", given_path);
}

/* Only what exports targets stays, and of that only what is asked for and what that needs; what is
 * given does not run, and nor does what only it needed. */
TEST(cuts_a_plan)
{
	make_given();
	expect_cut(NULL, NULL, "source rules more ", "source rules more ");
	expect_cut("rules", NULL, "source rules ", "source rules ");
	expect_cut(NULL, given_path, "rules more ", "=source rules more ");
	expect_cut("more", given_source, "rules more ", "=source rules more ");
	expect_cut("more", given_rules, "more ", "=rules more ");
	expect_cut("rules", given_rules, "", "=rules ");
	expect_uncut("sampler", NULL, "there are source, rules, more");
	expect_uncut("service", NULL, "no component \"service\" exports targets");
	expect_uncut(NULL, "/nowhere/file", "cannot read /nowhere/file");
	expect_uncut(NULL, "moon=/nowhere", "no component \"moon\"");
	unlink(given_path);
}

static int cut_once(void *context)
{
	struct texts texts = {0};
	struct plan *plan = make_plan();
	struct discovery_plan d;
	int r = plan && vec_push(&texts, (const char *)context) ? 0 : -ENOMEM;

	if (!r)
		r = discovery_plan_cut(plan, "more", &texts, &d, NULL);
	if (!r)
		discovery_plan_fini(&d);
	vec_free(&texts);
	plan_free(plan);
	return r;
}

TEST(cutting_out_of_memory)
{
	make_given();
	test_each_failing_allocation(cut_once, given_source);
	unlink(given_path);
}

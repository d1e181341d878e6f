/* SPDX-License-Identifier: Apache-2.0 */
/* Targets of components that expressions look into: the list that was supplied, which is empty
 * before the first, and what waits for it. */
#include "host/lang/tests/test-lang.h"
#include "host/lang/foreach-items.h"
#include "host/lang/supplied.h"

#include <errno.h>

#define PODS  "discovery.kubernetes \"p\" {\n  role = \"pod\"\n}\n"
#define ANY   "test.any \"a\" {\n  value = "
#define END   "\n}\n"
#define NODES "node discovery.kubernetes.p: {role=\"pod\"}\n"
#define LIST  "node discovery.kubernetes.p.targets[]: {}\n"
#define EDGE                                                                                       \
	"edge discovery.kubernetes.p.targets → "                                                   \
	"discovery.kubernetes.p.targets[].collection #0\n"

/* Targets with the labels app and n, as "a1" says; up to NULL. */
static void add(struct supplied *s, const char *id, const char *const *items)
{
	static const struct andiron_str keys[] = {{"app", 3}, {"n", 1}};
	struct andiron_value *labels, *maps;
	struct andiron_value list = {.kind = ANDIRON_VALUE_LIST};
	size_t n = 0;

	while (items[n])
		n++;
	labels = calloc(2 * n + 1, sizeof(*labels));
	maps = calloc(n + 1, sizeof(*maps));
	expect(labels && maps);
	list.items = maps;
	for (; items[list.n_items]; list.n_items++) {
		const char *item = items[list.n_items];
		struct andiron_value *of = &labels[2 * list.n_items];

		of[0].kind = of[1].kind = ANDIRON_VALUE_STRING;
		of[0].string = (struct andiron_str){item, strlen(item) - 1};
		of[1].string = (struct andiron_str){item + strlen(item) - 1, 1};
		maps[list.n_items] = (struct andiron_value){
			.kind = ANDIRON_VALUE_MAP, .keys = keys, .items = of, .n_items = 2};
	}
	expect_eq(supplied_set(s, id, SUPPLIED_TARGETS, &list), 1);
	expect_eq(supplied_try_all(s), 1);
	supplied_end(s, 0);
	free(labels);
	free(maps);
}

#define ITEMS(...) (const char *const[]){__VA_ARGS__, NULL}

static char *made(const char *source, const char *const *items)
{
	struct supplied *s = supplied_new();
	struct registry registry = {.supplied = s};
	char *got;

	expect(s);
	if (items)
		add(s, "discovery.kubernetes.p.targets[]", items);
	got = plan_text_of(&(struct source){"f", str_of(source)}, 1, &registry);
	supplied_free(s);
	return got;
}

static void expect_made(const char *source, const char *const *items, const char *expected)
{
	char *got = made(source, items);

	expect_str(str_of(got), expected);
	free(got);
}

/* What stands in the configuration, and what components have, are looked into alike. */
TEST(known_targets_are_a_list)
{
	static const struct {
		const char *expression, *value;
	} all[] = {
		{"discovery.kubernetes.p.targets[1]", "{app=\"db\" n=\"2\"}"},
		{"discovery.kubernetes.p.targets[0][\"app\"]", "\"web\""},
		{"discovery.kubernetes.p.targets[0].n", "\"1\""},
		{"array.combine_maps(discovery.kubernetes.p.targets, [{n = \"2\", x = 7}], "
		 "[\"n\"])",
		 "[{app=\"db\" n=\"2\" x=7}]"},
		{"array.combine_maps(discovery.kubernetes.p.targets, "
		 "discovery.kubernetes.p.targets, [\"n\"])[0]",
		 "{app=\"web\" n=\"1\"}"},
		{"array.group_by(discovery.kubernetes.p.targets, \"app\", false)[1].items",
		 "[{app=\"db\" n=\"2\"}]"},
		{"array.group_by(array.concat([{app = \"x\"}], discovery.kubernetes.p.targets, "
		 "[{}]), \"app\", true)[0].app",
		 "\"x\""},
		{"array.concat([{}], discovery.kubernetes.p.targets)[2].app", "\"db\""},
		{"coalesce(discovery.kubernetes.p.targets, 1)[0].n", "\"1\""},
		{"discovery.kubernetes.p.targets == []", "false"},
	};
	char wanted[1000], source[1000];

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		snprintf(source, sizeof(source), PODS ANY "%s" END, all[i].expression);
		snprintf(wanted, sizeof(wanted),
			 NODES "node test.any.a: {value=%s}\n" LIST EDGE, all[i].value);
		expect_made(source, ITEMS("web1", "db2"), wanted);
	}
}

/* Before the first list there are no targets, as in Alloy; who names one of them waits. */
TEST(unknown_targets_are_none)
{
	expect_made(PODS ANY "array.group_by(discovery.kubernetes.p.targets, \"app\", false)" END,
		    NULL, NODES "node test.any.a: {value=[]}\n" LIST EDGE);
	expect_made(PODS ANY "discovery.kubernetes.p.targets[0].app" END, NULL,
		    "test.any.a waits for discovery.kubernetes.p.targets[]\n" NODES LIST EDGE);
	expect_made(PODS ANY
		    "array.group_by(discovery.kubernetes.p.targets, \"app\", false)[0].items" END,
		    NULL,
		    "test.any.a waits for discovery.kubernetes.p.targets[]\n" NODES LIST EDGE);
	expect_made(PODS "declare \"d\" {\n  argument \"l\" { }\n" ANY "argument.l.value[0]" END
			 "}\nd \"x\" {\n  l = array.combine_maps(discovery.kubernetes.p.targets, "
			 "[], [\"n\"])\n}\n",
		    NULL,
		    "d.x/test.any.a waits for discovery.kubernetes.p.targets[]\n" NODES LIST EDGE);
}

/* An index into a list that is known is an error, whatever else is not known. */
TEST(what_is_known_does_not_wait)
{
	char *got = made(PODS ANY "discovery.kubernetes.p.targets[0]" END
			      "test.any \"b\" {\n  value = [1][3]\n}\n",
			 NULL);

	expect(strstr(got, "error: this list has no element 3 (it holds 1)"));
	free(got);
}

/* The last plan goes on where a list lacks what is named. */
TEST(what_is_missing_is_an_error)
{
	char *got = made(PODS ANY "discovery.kubernetes.p.targets[2]" END, ITEMS("web1", "db2"));

	expect(strstr(got, "f:5:42: error: this list has no element 2 (it holds 2)"));
	free(got);
	got = made(PODS ANY "discovery.kubernetes.p.targets[0].none" END, ITEMS("web1"));
	expect(strstr(got, "error: this object has no member none"));
	free(got);
}

/* A component whose targets are made of another's comes after it, and not after itself. */
TEST(circles_are_found)
{
	char *got = made("discovery.relabel \"a\" {\n"
			 "  targets = array.combine_maps(discovery.relabel.b.output, [], "
			 "[\"n\"])\n}\n"
			 "discovery.relabel \"b\" {\n  targets = discovery.relabel.a.output\n}\n",
			 NULL);

	expect(strstr(got, "error: these components feed each other in a circle: "));
	free(got);
}

/* One that is made of targets is an input as if it stood in the file. */
TEST(lists_are_targets_again)
{
	expect_made(PODS "discovery.relabel \"r\" {\n"
			 "  targets = array.combine_maps(discovery.kubernetes.p.targets, "
			 "[{n = \"1\", x = \"y\"}], [\"n\"])\n}\n",
		    ITEMS("web1", "db2"),
		    NODES "node discovery.relabel.r: {rule=[]*}\n" LIST EDGE
			  "literal → discovery.relabel.r.targets #0: [{app=\"web\" n=\"1\" "
			  "x=\"y\"}]\n");
}

#define LOOP(collection)                                                                           \
	PODS "foreach \"f\" {\n  collection = " collection "\n  var = \"x\"\n  id = \"app\"\n"     \
	     "  template {\n    test.any \"a\" {\n      value = x\n    }\n  }\n}\n"

/* A foreach goes over what is made of targets; an item's components stay as long as its id does. */
TEST(foreach_over_what_is_made_of_targets)
{
	const char *groups = LOOP("array.group_by(discovery.kubernetes.p.targets, \"app\", true)");
	char *got = plan_text(str_of(groups));

	expect(strstr(got, "f:4:1: warning: what is made of discovery.kubernetes.p.targets[] is "
			   "not checked"));
	free(got);
	expect_made(groups, NULL, NODES LIST EDGE);
	expect_made(groups, ITEMS("db2", "web1", "web3"),
		    NODES "node foreach.f/db/test.any.a: {value={app=\"db\" items=[{app=\"db\" "
			  "n=\"2\"}]}}\n"
			  "node foreach.f/web/test.any.a: {value={app=\"web\" items=[{app=\"web\" "
			  "n=\"1\"} {app=\"web\" n=\"3\"}]}}\n" LIST EDGE);
	expect_made(LOOP("array.group_by(discovery.kubernetes.p.targets, \"app\", true)[0].items"),
		    NULL,
		    "foreach.f waits for discovery.kubernetes.p.targets[], whatever it is\n" NODES
			    LIST EDGE);
}

/* Items may be of any kind where a list of the configuration stands in for targets. */
TEST(foreach_over_items_that_are_no_objects)
{
	expect_made(LOOP("coalesce(discovery.kubernetes.p.targets, [[\"x\"], 3, \"word\"])"),
		    NULL,
		    NODES "node foreach.f/08f1c907b58eba68/test.any.a: {value=[\"x\"]}\n"
			  "node foreach.f/cbf29ce484222326/test.any.a: {value=3}\n"
			  "node foreach.f/4f75985e732456a6/test.any.a: {value=\"word\"}\n" LIST
			  EDGE);
}

/* The agent keeps what a template may need, though no target is known. */
TEST(templates_are_known_without_targets)
{
	struct supplied *s = supplied_new();
	struct registry registry = {.supplied = s};
	struct diags diags = {.arena = ARENA_NULL};
	struct plan *plan = NULL;
	struct source source = {"f", STR(LOOP("array.group_by(discovery.kubernetes.p.targets, "
					      "\"app\", true)[0].items"))};

	expect(s);
	expect_eq(plan_build_with(&source, 1, &registry, s, &diags, &plan), 0);
	expect_eq(plan->templates.n, 1);
	expect_str(str_of(plan->templates.p[0]->component->name), "test.any");
	expect_eq(plan->lists.n, 0);
	plan_free(plan);
	diags_free(&diags);
	supplied_free(s);
}

/* What comes of many targets is bounded: the pairs that are looked at, and what they make. */
TEST(what_is_made_of_many_targets_is_bounded)
{
	static const struct {
		size_t n;
		const char *says;
	} all[] = {
		{500, "node test.any.a: {value=[{app=\"web\" n=\"1\"}"},
		{501, "f:5:11: error: what comes of these lists has more than 1000000 labels"},
		{1001, "f:5:11: error: these lists have more than 1000000 pairs of objects"},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		const char **items = calloc(all[i].n + 1, sizeof(*items));
		char *got;

		expect(items);
		for (size_t k = 0; k < all[i].n; k++)
			items[k] = "web1";
		got = made(PODS ANY "array.combine_maps(discovery.kubernetes.p.targets, "
				    "discovery.kubernetes.p.targets, [\"app\"])" END,
			   items);
		if (!strstr(got, all[i].says))
			test_fail(__FILE__, __LINE__, "%zu: %.200s", i, got);
		free(got);
		free(items);
	}
}

static struct plan *build(const char *source, struct supplied *s)
{
	struct registry registry = {.supplied = s};
	struct diags diags = {.arena = ARENA_NULL};
	struct plan *plan = NULL;

	expect_eq(plan_build_with(&(struct source){"f", str_of(source)}, 1, &registry, s, &diags,
				  &plan),
		  0);
	diags_free(&diags);
	return plan;
}

/* A list comes only from what runs: no reload is put off for it. */
TEST(nothing_runs_beside_for_a_list)
{
	struct supplied *s = supplied_new();
	struct plan *from = build(PODS "test.any \"gone\" {}\n" ANY "1" END, s);
	struct plan *to = build(PODS ANY "discovery.kubernetes.p.targets[0]" END, s);

	expect_eq(to->waiting.n, 1);
	expect(!plan_loses(from, to));
	plan_free(from);
	plan_free(to);
	supplied_free(s);
}

static int build_with_failures(void *context)
{
	struct supplied *s = context;
	struct registry registry = {.supplied = s};
	struct diags diags = {.arena = ARENA_NULL};
	struct plan *plan = NULL;
	struct source source = {"f", STR(PODS ANY "array.concat([{}], "
						  "discovery.kubernetes.p.targets)[0]" END)};
	int r = plan_build_with(&source, 1, &registry, s, &diags, &plan);

	expect(r == -ENOMEM || (r == 0 && plan->nodes.n == 3));
	plan_free(plan);
	diags_free(&diags);
	return r;
}

/* Every allocation may fail. */
TEST(looking_into_targets_survives_out_of_memory)
{
	struct supplied *s = supplied_new();

	expect(s);
	add(s, "discovery.kubernetes.p.targets[]", ITEMS("web1"));
	test_each_failing_allocation(build_with_failures, s);
	supplied_free(s);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* foreach over targets that come while the plan runs: what waits, what is made of each item, and
 * under which id. */
#include "host/lang/tests/test-lang.h"
#include "host/lang/foreach-items.h"
#include "host/lang/supplied.h"

#include "base/buf.h"

#include <errno.h>

#define PODS "discovery.kubernetes \"p\" {\n  role = \"pod\"\n}\n"
#define LOOP(id, template)                                                                         \
	PODS "foreach \"f\" {\n  collection = discovery.kubernetes.p.targets\n  var = \"x\"\n" id  \
	     "  template {\n    " template "\n  }\n}\n"
#define ANY(value) "test.any \"a\" {\n  value = " value "\n}"
#define VALUE      "test.value \"v\" {\n}\n\n"
#define EDGE       "edge discovery.kubernetes.p.targets → foreach.f.collection #0\n"

static struct andiron_value text(const char *s)
{
	return (struct andiron_value){.kind = ANDIRON_VALUE_STRING, .string = {s, strlen(s)}};
}

/* Items with the labels app and n, as "a1" says; up to NULL. */
static struct supplied *supply(const char *const *items)
{
	static const struct andiron_str keys[] = {{"app", 3}, {"n", 1}};
	struct andiron_value labels[8][2], maps[8];
	struct andiron_value list = {.kind = ANDIRON_VALUE_LIST, .items = maps};
	struct supplied *s = supplied_new();

	expect(s);
	for (; items[list.n_items]; list.n_items++) {
		const char *item = items[list.n_items];

		labels[list.n_items][0] = text(item);
		labels[list.n_items][0].string.len = strlen(item) - 1;
		labels[list.n_items][1] = text(item + strlen(item) - 1);
		maps[list.n_items] = (struct andiron_value){.kind = ANDIRON_VALUE_MAP,
							    .keys = keys,
							    .items = labels[list.n_items],
							    .n_items = 2};
	}
	expect_eq(supplied_set(s, "foreach.f", "items", &list), 1);
	expect_eq(supplied_set(s, "foreach.f", "items", &list), 0);
	expect_eq(supplied_try_all(s), 1);
	supplied_end(s, 0);
	return s;
}

static char *made_of(const char *source, struct supplied *s)
{
	struct registry registry = {.supplied = s};
	char *got = plan_text_of(&(struct source){"f", str_of(source)}, 1, &registry);

	supplied_free(s);
	return got;
}

#define ITEMS(...) supply((const char *const[]){__VA_ARGS__, NULL})

static void expect_made(const char *source, struct supplied *s, const char *expected)
{
	char *got = made_of(source, s);

	expect_str(str_of(got), expected);
	free(got);
}

/* Until there is a list nothing is made, and the collection has somebody who takes it. */
TEST(begins_without_items)
{
	char *got = plan_text(str_of(LOOP("", ANY("x.app"))));

	expect(strstr(got, "f:4:1: warning: what foreach.f makes of its items is not checked"));
	expect(strstr(got, "node foreach.f: {}\n") && strstr(got, EDGE));
	expect(!strstr(got, "waits for") && !strstr(got, "test.any"));
	free(got);
	got = plan_text(str_of(LOOP("", "unknown.thing \"a\" {}")));
	expect(strstr(got, "f:8:5: error: ") && strstr(got, "unknown.thing"));
	free(got);
}

/* An item's components have its label in their ids, so that they are the same in another list. */
TEST(makes_its_template_of_each_item)
{
	const char *source = LOOP("  id = \"app\"\n", ANY("[x.app, x[\"n\"]]"));

	expect_made(source, ITEMS("web1", "db2"),
		    "node discovery.kubernetes.p: {role=\"pod\"}\nnode foreach.f: {}\n"
		    "node foreach.f/web/test.any.a: {value=[\"web\" \"1\"]}\n"
		    "node foreach.f/db/test.any.a: {value=[\"db\" \"2\"]}\n" EDGE);
	expect_made(source, ITEMS("db2", "db3"),
		    "node discovery.kubernetes.p: {role=\"pod\"}\nnode foreach.f: {}\n"
		    "node foreach.f/db/test.any.a: {value=[\"db\" \"2\"]}\n"
		    "node foreach.f/db-2/test.any.a: {value=[\"db\" \"3\"]}\n" EDGE);
}

/* What does not fit into an id, or is not there, is computed: the same of the same item. */
TEST(keys_are_the_items_own)
{
	char *first = made_of(LOOP("", ANY("x.n")), ITEMS("a1", "b2"));
	char *second = made_of(LOOP("", ANY("x.n")), ITEMS("b2"));
	const char *at = strstr(first, "{value=\"2\"}");
	char *odd = made_of(LOOP("  id = \"app\"\n", ANY("x.n")), ITEMS("a/b1"));

	expect(at && at - first > 40);
	expect(strstr(second, "{value=\"2\"}"));
	at -= strlen("foreach.f/0123456789abcdef/test.any.a: ");
	expect(!strncmp(strstr(second, "foreach.f/"), at, strlen("foreach.f/0123456789abcdef")));
	expect(!strstr(odd, "a/b") && strstr(odd, "/test.any.a: {value=\"1\"}"));
	free(first);
	free(second);
	free(odd);
}

/* A label may look like a key that has a number. */
TEST(keys_that_look_alike_end)
{
	struct foreach_keys keys = {0};
	struct arena arena = ARENA_NULL;
	struct draft d = {.l.arena = &arena};
	struct andiron_str key = {"app", 3};
	struct andiron_value label = text("a-102"), item = {.kind = ANDIRON_VALUE_MAP,
							    .keys = &key,
							    .items = &label,
							    .n_items = 1};

	expect_str(str_of(foreach_items_key(&d, &item, STR("app"), &keys)), "a-102");
	label = text("a");
	for (int i = 0; i < 300; i++)
		expect(foreach_items_key(&d, &item, STR("app"), &keys));
	expect_eq(keys.given.strings.n, 302); /* the empty one is always there */
	expect_str(str_of(foreach_items_key(&d, &item, STR("app"), &keys)), "a-302");
	label = text("a-102");
	expect_str(str_of(foreach_items_key(&d, &item, STR("app"), &keys)), "a-102-2");
	label = text("a b"); /* FNV-1a of it and of 0xff, in every process */
	expect_str(str_of(foreach_items_key(&d, &item, STR("app"), &keys)), "c1499282aaf8e137");
	foreach_keys_free(&keys);
	arena_free(&arena);
}

/* The agent keeps what a template may need, though there is no item now. */
TEST(templates_are_known_without_items)
{
	static const char *const none[] = {NULL};
	static const char source[] = LOOP("", "foreach \"in\" {\n collection = [1]\n var = \"y\"\n"
					      "template {\n" ANY("y") "\n}\n}\n");
	struct supplied *s = supply(none);
	struct registry registry = {0};
	struct diags diags = {.arena = ARENA_NULL};
	struct plan *plan;

	expect_eq(plan_build_with(&(struct source){"f", str_of(source)}, 1, &registry, s, &diags,
				  &plan),
		  0);
	expect_eq(plan->nodes.n, 2);
	expect_eq(plan->lists.n, 1);
	expect_str(str_of(plan->lists.p[0]), "foreach.f");
	expect_eq(plan->templates.n, 1);
	expect_str(str_of(plan->templates.p[0]->component->name), "test.any");
	expect(!plan->may_bring);
	plan_free(plan);
	diags_free(&diags);
	supplied_free(s);
}

/* What is wrong is told at its place. */
TEST(mistakes)
{
	static const struct {
		const char *source, *says;
	} all[] = {
		{LOOP("  id = 7\n", ANY("x.n")), "f:7:8: error: id is the name of a label"},
		{VALUE LOOP("  id = test.value.v.data\n", ANY("x.n")),
		 "f:10:8: error: id is the name of a label in double quotes, which no component"},
		{LOOP("", "declare \"d\" {}"),
		 "f:8:5: error: the block declare cannot stand in a template"},
		{LOOP("", "import.file \"d\" {\n filename = \"x\"\n}"),
		 "error: the block import.file cannot stand in a template"},
		{LOOP("", ANY("x.none.deeper")), "has no member"},
		{LOOP("", "unknown.thing \"a\" {}"), "unknown.thing"},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		char *got = made_of(all[i].source, ITEMS("a1"));

		if (!strstr(got, all[i].says) || !strstr(got, "error"))
			test_fail(__FILE__, __LINE__, "%zu: %s", i, got);
		free(got);
	}
}

/* What stands in a template is refused once, and not with each item. */
TEST(an_unknown_component_is_told_once)
{
	char *got = made_of(LOOP("", "unknown.thing \"a\" {}"), ITEMS("a1", "b2", "c3"));
	const char *first = strstr(got, "no component \"unknown.thing\"");

	expect(first && !strstr(first + 1, "error") && !strstr(got, " more\n"));
	free(got);
	got = plan_text(STR("foreach \"f\" {\n  collection = [1, 2]\n  var = \"x\"\n  template {\n"
			    "    unknown.thing \"a\" {}\n  }\n}\n"));
	first = strstr(got, "no component \"unknown.thing\"");
	expect(first && !strstr(first + 1, "error"));
	free(got);
}

/* A list has room for 16 MiB, and its items are maps of texts. */
TEST(lists_are_bounded)
{
	struct supplied *s = supplied_new();
	char *much = calloc(1, (16 << 20) + 1);
	struct andiron_str key = {"k", 1};
	struct andiron_value item = {.kind = ANDIRON_VALUE_STRING};
	struct andiron_value map = {
		.kind = ANDIRON_VALUE_MAP, .keys = &key, .items = &item, .n_items = 1};
	struct andiron_value list = {.kind = ANDIRON_VALUE_LIST, .items = &map, .n_items = 1};

	expect(s && much);
	memset(much, 'x', 16 << 20);
	item.string = (struct andiron_str){much, (16 << 20) - 1};
	expect_eq(supplied_set(s, "a", "items", &list), 1);
	item.string.len++;
	expect_eq(supplied_set(s, "a", "items", &list), -EINVAL);
	item = (struct andiron_value){.kind = ANDIRON_VALUE_INT};
	expect_eq(supplied_set(s, "a", "items", &list), -EINVAL);
	list.items = &item;
	expect_eq(supplied_set(s, "a", "items", &list), -EINVAL);
	free(much);
	supplied_free(s);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* foreach over targets that come while the plan runs: what waits, what is made of each item, and
 * under which id. */
#include "host/lang/tests/test-lang.h"
#include "host/lang/foreach-items.h"
#include "host/lang/supplied.h"
#include "host/lang/values/file-content.h"

#include "base/buf.h"

#include <errno.h>
#include <unistd.h>

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

/* Adds items with the labels app and n, as "a1" says; up to NULL. */
static void add_list(struct supplied *s, const char *id, const char *const *items)
{
	static const struct andiron_str keys[] = {{"app", 3}, {"n", 1}};
	struct andiron_value labels[8][2], maps[8];
	struct andiron_value list = {.kind = ANDIRON_VALUE_LIST, .items = maps};

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
	expect_eq(supplied_set(s, id, "items", &list), 1);
	expect_eq(supplied_set(s, id, "items", &list), 0);
	expect_eq(supplied_try_all(s), 1);
	supplied_end(s, 0);
}

static struct supplied *supply(const char *id, const char *const *items)
{
	struct supplied *s = supplied_new();

	expect(s);
	add_list(s, id, items);
	return s;
}

static char *made_of(const char *source, struct supplied *s)
{
	struct registry registry = {.supplied = s};
	char *got = plan_text_of(&(struct source){"f", str_of(source)}, 1, &registry);

	supplied_free(s);
	return got;
}

#define LIST(...)  (const char *const[]){__VA_ARGS__, NULL}
#define ITEMS(...) supply("foreach.f", LIST(__VA_ARGS__))

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

	expect(strstr(got, "f:4:1: warning: what is made of foreach.f is not checked"));
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

/* What an instance of a module exports is known later where a component brings the module. */
TEST(id_is_of_a_module_that_is_supplied)
{
	static const char source[] =
		LOOP("  id = m.one.i.label\n", ANY("x.n"))
		"test.value \"v\" {}\nimport.string \"m\" {\n  content = test.value.v.data\n}\n"
		"m.one \"i\" {}\n";
	struct andiron_value module =
		text("declare \"one\" {\n  export \"label\" {\n    value = \"app\"\n  }\n}\n");
	struct supplied *s = ITEMS("web1");
	char *got = made_of(source, s);

	expect(strstr(got, "foreach.f waits for import.string.m, whatever it is\n"));
	expect(!strstr(got, "error") && !strstr(got, "node foreach.f"));
	free(got);
	s = ITEMS("web1");
	expect_eq(supplied_set(s, "test.value.v", "data", &module), 1);
	expect_eq(supplied_try_all(s), 1);
	supplied_end(s, 0);
	got = made_of(source, s);
	expect(strstr(got, "node foreach.f/web/test.any.a: {value=\"1\"}\n"));
	free(got);
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

/* Of a foreach over a list that has come, and is empty. */
static struct plan *plan_without_items(const char *source)
{
	static const char *const none[] = {NULL};
	struct supplied *s = supply("foreach.f", none);
	struct registry registry = {0};
	struct diags diags = {.arena = ARENA_NULL};
	struct plan *plan;

	expect_eq(plan_build_with(&(struct source){"f", str_of(source)}, 1, &registry, s, &diags,
				  &plan),
		  0);
	expect_eq(plan->nodes.n, 2);
	diags_free(&diags);
	supplied_free(s);
	return plan;
}

/* The agent keeps what a template may need, though there is no item now. */
TEST(templates_are_known_without_items)
{
	struct plan *plan = plan_without_items(
		LOOP("", "foreach \"in\" {\n collection = [1]\n var = \"y\"\n"
			 "template {\n" ANY("y") "\n}\n}\n"));

	expect_eq(plan->lists.n, 1);
	expect_str(str_of(plan->lists.p[0].id), "foreach.f");
	expect_eq(plan->templates.n, 1);
	expect_str(str_of(plan->templates.p[0]->component->name), "test.any");
	expect(!plan->may_bring);
	plan_free(plan);
}

/* Of what a template declares nothing is known before there is an item. */
TEST(templates_that_declare_may_bring_any)
{
	struct plan *plan = plan_without_items(
		LOOP("", "import.file \"m\" {\n filename = x.n\n}\nm.one \"a\" {}\n"
			 "foreach \"in\" {\n collection = [1]\n var = \"y\"\n"
			 "template {\n m.two \"b\" {}\n}\n}\n"));

	expect(plan->may_bring);
	plan_free(plan);
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
		{LOOP("", "export \"d\" {}"),
		 "f:8:5: error: the block export stands inside declare only\n"},
		{LOOP("", "import.file \"d\" {\n filename = x.n\n}"),
		 "error: cannot read the module "},
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

#define COUNT(n, text) "test.count \"c\" {\n  n = " n "\n  text = " text "\n}"
#define ID             "  id = \"app\"\n"
#define NUMBER         "encoding.from_json(x.n)"

static int build_items(const struct source *source, struct supplied *s, struct diags *diags,
		       struct plan **ret)
{
	struct registry registry = {.supplied = s};
	int r = plan_build_with(source, 1, &registry, s, diags, ret);

	/* For an item that is left out nothing is loaded into an agent that runs. */
	expect(r != 0 || registry.n_all == 0);
	return r;
}

/* The nodes' ids, and what is said of the last list. */
static void expect_left_out(const char *source, struct supplied *s, const char *ids,
			    const char *said)
{
	struct diags diags = {.arena = ARENA_NULL};
	struct plan *plan = NULL;
	struct buf got = BUF_NULL;

	expect_eq(build_items(&(struct source){"f", str_of(source)}, s, &diags, &plan), 0);
	vec_each (&plan->nodes, node)
		if (str_find(str_of(node->id), '/') < strlen(node->id))
			buf_printf(&got, "%s ", node->id);
	expect_str(buf_str(&got), ids);
	expect_str(str_of(plan->lists.p[plan->lists.n - 1].left_out), said);
	expect_eq(diags.n_errors, 0);
	buf_free(&got);
	plan_free(plan);
	diags_free(&diags);
	supplied_free(s);
}

#define CANNOT  " targets are left out, since the template cannot take them; foreach.f/"
#define INNER   "foreach \"in\" {\n  collection = "
#define LOOP_IN(collection, template)                                                              \
	INNER collection "\n  var = \"y\"\n  template {\n" template "\n}\n}"

/* An item that the template cannot take costs itself alone, whoever finds it: blocks, arguments, or
 * the component. */
TEST(a_bad_item_leaves_the_others)
{
	expect_left_out(LOOP(ID, COUNT(NUMBER, "x.app")), ITEMS("web1", "dbx", "log3", "tmpy"),
			"foreach.f/web/test.count.c foreach.f/log/test.count.c ",
			"2 of 4" CANNOT "db: f:10:26: error: this is not JSON: this is no value "
			"(byte 1)");
	expect_left_out(LOOP(ID, COUNT("1", "x.app")), ITEMS("odd1", "b2"),
			"foreach.f/b/test.count.c ",
			"1 of 2" CANNOT "odd: f:9:5: error: that is odd");
	expect_left_out(LOOP("  id = \"n\"\n", LOOP_IN("encoding.from_json(x.app)",
							 COUNT("y", "x.n"))),
			ITEMS("[7]1", "72"), "foreach.f/1/foreach.in/1/test.count.c ",
			"1 of 2" CANNOT "2: f:10:16: error: foreach goes over a list or over "
			"targets, not over a number");
	expect_left_out(LOOP(ID, COUNT("1", "x.n")), ITEMS("a1"), "foreach.f/a/test.count.c ", "");
}

/* What is told is the first finding without what it must not quote. */
TEST(what_is_told_has_no_secrets)
{
	expect_left_out(LOOP("  id = \"n\"\n",
			     LOOP_IN("encoding.from_json(x.app)",
				     "pyroscope.write \"w\" {\n endpoint {\n url = \"\"\n"
				     " headers = {a = hunter2}\n }\n}")),
			ITEMS("[7]1", "[]2"), "",
			"1 of 2" CANNOT "1: f:16:17: error: the name ******** means nothing here");
	/* Whose secret it is, only a plugin may know that is not loaded. */
	expect_left_out(LOOP("  id = \"n\"\n",
			     LOOP_IN("encoding.from_json(x.app)", ANY("{a = hunter2}"))),
			ITEMS("[7]1", "[]2"), "",
			"1 of 2" CANNOT "1: f:14:16: error: the name ******** means nothing here");
}

static void put(const char *name, const char *text)
{
	FILE *f = fopen(name, "w");

	expect(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

/* A file whose content no template takes, or that is away, is looked at again. */
TEST(files_of_what_is_left_out_are_followed)
{
	const char *source = LOOP("  id = \"n\"\n",
				  "local.file \"c\" {\n    filename = x.app\n  }\n" COUNT(
					  "encoding.from_json(local.file.c.content)", "\"\""));
	struct supplied *s = ITEMS("good1", "none2", "bad3");
	struct diags diags = {.arena = ARENA_NULL};
	struct plan *plan = NULL;
	char folder[] = "/tmp/andiron-items-XXXXXX";

	expect(mkdtemp(folder) && chdir(folder) == 0);
	put("good", "7");
	put("bad", "x");
	expect_eq(build_items(&(struct source){"f", str_of(source)}, s, &diags, &plan), 0);
	expect(strstr(plan->lists.p[0].left_out, "2 of 3"));
	expect_eq(plan->files.n, 3);
	vec_each (&plan->files, file)
		expect_eq(file->hash, file_content_hash(file->path));
	expect_str(str_of(plan->files.p[0].path), "good");
	expect_str(str_of(plan->files.p[1].path), "none");
	expect_str(str_of(plan->files.p[2].path), "bad");
	expect(unlink("good") == 0 && unlink("bad") == 0);
	expect(chdir("/") == 0 && rmdir(folder) == 0);
	plan_free(plan);
	diags_free(&diags);
	supplied_free(s);
}

/* A module that no template takes, or that is away, is looked at again. One that all have in common
 * is read once. */
TEST(modules_of_what_is_left_out_are_followed)
{
	const char *source = LOOP("  id = \"n\"\n",
				  "import.file \"m\" {\n    filename = x.app\n  }\n"
				  "  m.one \"a\" { }\n");
	const char *shared = LOOP("  id = \"n\"\n",
				  "import.file \"m\" {\n    filename = \"good\"\n  }\n"
				  "  m.one \"a\" { }\n");
	struct supplied *s = ITEMS("good1", "none2", "bad3");
	struct registry registry = {.supplied = s};
	struct diags diags = {.arena = ARENA_NULL};
	struct plan *plan = NULL;
	char folder[] = "/tmp/andiron-items-XXXXXX";

	expect(mkdtemp(folder) && chdir(folder) == 0);
	put("good", "declare \"one\" {\n test.any \"a\" {\n value = 7\n}\n}\n");
	put("bad", "declare {");
	expect_eq(plan_build_with(&(struct source){"f", str_of(source)}, 1, &registry, s, &diags,
				  &plan),
		  0);
	expect(strstr(plan->lists.p[0].left_out, "2 of 3"));
	expect_eq(plan->files.n, 3);
	expect_str(str_of(plan->files.p[0].path), "good");
	expect_str(str_of(plan->files.p[1].path), "none");
	expect_str(str_of(plan->files.p[2].path), "bad");
	vec_each (&plan->files, file)
		expect_eq(file->hash, file_content_hash(file->path));
	plan_free(plan);
	expect_eq(plan_build_with(&(struct source){"f", str_of(shared)}, 1, &registry, s, &diags,
				  &plan),
		  0);
	expect(!plan->lists.p[0].left_out);
	expect_eq(plan->files.n, 1);
	plan_free(plan);
	expect(unlink("good") == 0 && unlink("bad") == 0);
	expect(chdir("/") == 0 && rmdir(folder) == 0);
	diags_free(&diags);
	supplied_free(s);
}

/* A list within an item has its own. */
TEST(lists_within_items_leave_out_theirs)
{
	const char *source = LOOP(ID, LOOP_IN("discovery.kubernetes.p.targets\n  id = \"app\"",
					      COUNT("encoding.from_json(y.n)", "x.n")));
	struct supplied *s = ITEMS("a1");

	add_list(s, "foreach.f/a/foreach.in", LIST("b1", "cx"));
	expect_left_out(source, s,
			"foreach.f/a/foreach.in foreach.f/a/foreach.in/b/test.count.c ",
			"1 of 2" CANNOT "a/foreach.in/c: f:15:26: error: this is not JSON: this is "
			"no value (byte 1)");
}

/* Where no item is good the list is refused, with all that was found; and so is a file that has
 * other errors, or whose own list has them. */
TEST(what_no_item_can_take_is_refused)
{
	static const struct {
		const char *source, *id, *says;
		int n; /* errors */
	} all[] = {
		{LOOP(ID, COUNT(NUMBER, "x.app")), "foreach.f", "f:10:26: error: ", 2},
		{LOOP(ID, COUNT(NUMBER, "x.app")) COUNT("[]", "1"), "foreach.f", "f:16:7: error: ",
		 3},
		{"foreach \"f\" {\n collection = [{n = \"1\"}, {n = \"x\"}]\n var = \"x\"\n"
		 " template {\n" COUNT(NUMBER, "\"\"") "\n}\n}\n",
		 "foreach.f", "this is not JSON", 1},
		/* Said of the first item only, but true of each. */
		{"declare \"d\" {\n  unknown.thing \"a\" { }\n}\n" LOOP(ID, "d \"x\" { }"),
		 "foreach.f", "no component \"unknown.thing\"", 1},
		{"declare \"d\" {\n  argument \"a\" { }\n" LOOP(
			 ID, COUNT("argument.a.value", "\"\"")) "}\nd \"x\" {\n  a = 1 + \"\"\n}\n",
		 "d.x/foreach.f", "error", 1},
		{"declare \"d\" {\n  import.string \"s\" {\n  }\n  s.x \"a\" { }\n}\n" LOOP(
			 ID, "d \"x\" { }"),
		 "foreach.f", "import.string", 2},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct supplied *s = supply(all[i].id, LIST("ax", "bx"));
		struct source source = {"f", str_of(all[i].source)};
		struct diags diags = {.arena = ARENA_NULL};
		struct plan *plan = NULL;
		int r = build_items(&source, s, &diags, &plan);
		char *got = diags_text(&diags, false);

		if (r != -EINVAL || diags.n_errors != (size_t)all[i].n ||
		    !strstr(got, all[i].says))
			test_fail(__FILE__, __LINE__, "%zu: %d, %s", i, r, got);
		free(got);
		diags_free(&diags);
		supplied_free(s);
	}
}

static int build_with_failures(void *context)
{
	struct supplied *s = context;
	struct diags diags = {.arena = ARENA_NULL};
	struct plan *plan = NULL;
	struct source source = {"f", STR(LOOP(ID, COUNT(NUMBER, "x.app")))};
	int r = build_items(&source, s, &diags, &plan);

	expect(r == -ENOMEM || (r == 0 && plan->lists.p[0].left_out));
	plan_free(plan);
	diags_free(&diags);
	return r;
}

/* Every allocation may fail. */
TEST(leaving_out_survives_out_of_memory)
{
	struct supplied *s = ITEMS("web1", "dbx");

	test_each_failing_allocation(build_with_failures, s);
	supplied_free(s);
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

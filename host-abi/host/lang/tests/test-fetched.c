/* SPDX-License-Identifier: Apache-2.0 */
/* import.http: plans before a module is there, with it, and with one that is no use. */
#include "host/lang/supplied.h"
#include "host/lang/tests/test-lang.h"

#include "base/buf.h"

#include <errno.h>
#include <stdio.h>

#define IMPORT "import.http \"m\" { url = \"http://a/b/c\" }\n"
#define NODE "node import.http.m: {url=\"http://a/b/c\"}\n"
#define ONE                                                                                        \
	"declare \"one\" {\n  argument \"x\" { optional = true }\n"                                \
	"  test.any \"a\" { value = argument.x.value }\n"                                          \
	"  export \"e\" { value = [1, 2] }\n}\n"

static void give_value(struct supplied *s, const char *id, const char *name,
		       const struct andiron_value *value)
{
	expect_eq(supplied_set(s, id, name, value), 1);
	expect_eq(supplied_try_all(s), 1);
	supplied_end(s, 0);
}

static void give(struct supplied *s, const char *id, const char *text)
{
	give_value(s, id, str_starts(str_of(id), STR("import.")) ? "content" : "data",
		   &(struct andiron_value){.kind = ANDIRON_VALUE_STRING,
					   .string = {text, strlen(text)}});
}

static char *plan_with(const struct supplied *s, struct str text)
{
	struct registry registry = {.supplied = s};

	return plan_text_of(&(struct source){"f", text}, 1, &registry);
}

/* The plan of `text` with what was given, which is freed. */
static void expect_with(struct supplied *s, const char *text, const char *expected)
{
	char *got = plan_with(s, str_of(text));

	if (strcmp(got, expected) != 0)
		test_fail(__FILE__, __LINE__, "got:\n%s\nexpected:\n%s", got, expected);
	free(got);
	supplied_free(s);
}

/* `text` where import.http.m has fetched `module`, and the m of that one `inner` (or NULL). */
static void expect_fetched(const char *text, const char *module, const char *inner,
			   const char *expected)
{
	struct supplied *s = supplied_new();

	expect(s);
	give(s, "import.http.m", module);
	if (inner)
		give(s, "import.http.m/import.http.m", inner);
	expect_with(s, text, expected);
}

/* `text` behind the import, of which nothing has come, which is warned of. */
static void expect_awaited(const char *text, const char *expected)
{
	static const char warning[] =
		"f:1:1: warning: what import.http.m brings is not checked: it comes when the agent "
		"runs\n"
		"    1 | import.http \"m\" { url = \"http://a/b/c\" }\n"
		"      | ^~~~~~~~~~~\n";
	struct buf whole = BUF_NULL;
	char *got;

	buf_printf(&whole, IMPORT "%s", text);
	got = plan_with(NULL, buf_str(&whole));
	expect(str_starts(str_of(got), str_of(warning)));
	expect_str(str_of(got + strlen(warning)), expected);
	free(got);
	buf_free(&whole);
}

/* Who needs the module waits, and who names that one; what is wrong besides is told. */
TEST(what_is_not_fetched_is_waited_for)
{
	static const char waits[] =
		"test.any.b waits for import.http.m\n"
		"test.any.e waits for import.http.m\n"
		"m.one.x waits for import.http.m, whatever it is\n"
		"d.z/m.one.y waits for import.http.m, whatever it is\n"
		"foreach.l waits for import.http.m, whatever it is\n" NODE
		"node test.any.c: {value=1}\n";
	static const char faults[] =
		"f:2:17: error: there is no component \"test.any.none\"\n"
		"    2 | m.one \"x\" { x = test.any.none.targets }\n"
		"      |                 ^~~~~~~~~~~~~~~~~~~~~\n"
		"f:3:1: error: m.one needs a label\n"
		"    3 | m.one { }\n"
		"      | ^~~~~\n"
		"  write m.one \"NAME\" { … }\n"
		"f:4:1: error: m.one.x is defined twice\n"
		"    4 | m.one \"x\" { }\n"
		"      | ^~~~~\n"
		"f:5:1: error: the module m declares no \"a.b\"\n"
		"    5 | m.a.b \"c\" { }\n"
		"      | ^~~~~\n";

	expect_awaited("m.one \"x\" { x = 1 }\n"
		       "test.any \"b\" { value = [m.one.x.e] }\n"
		       "test.any \"c\" { value = 1 }\n"
		       "foreach \"l\" {\n  collection = m.one.x.e\n  var = \"v\"\n"
		       "  template {\n    test.any \"d\" { value = v }\n  }\n}\n"
		       "declare \"d\" {\n  m.one \"y\" { }\n"
		       "  export \"e\" { value = m.one.y.e }\n}\n"
		       "d \"z\" { }\ntest.any \"e\" { value = d.z.e }\n",
		       waits);
	expect_awaited("m.one \"x\" { x = test.any.none.targets }\nm.one { }\n"
		       "m.one \"x\" { }\nm.a.b \"c\" { }\n",
		       faults);
}

/* As what it brings shows, all that begins with its label is the module's. */
TEST(what_is_not_fetched_has_its_label)
{
	char *got = plan_text(STR("import.string \"test\" { content = test.value.v.data }\n"
				  "test.value \"v\" { }\n"));

	expect(strstr(got, "import.string.test refers to itself"));
	free(got);
	got = plan_text(STR("import.http \"test\" { url = \"http://a/b\" }\n"
			    "test.any \"x\" { }\n"));
	expect(strstr(got, "test.any.x waits for import.http.test, whatever it is\n"));
	free(got);
}

TEST(what_is_fetched_is_a_module)
{
	expect_fetched(IMPORT "m.one \"x\" { x = 3 }\n"
			      "foreach \"l\" {\n  collection = m.one.x.e\n  var = \"v\"\n"
			      "  template {\n    test.any \"d\" { value = v }\n  }\n}\n",
		       ONE, NULL,
		       NODE "node m.one.x/test.any.a: {value=3}\n"
			    "node foreach.l/1/test.any.d: {value=1}\n"
			    "node foreach.l/2/test.any.d: {value=2}\n");
	/* A component keeps its name, and a module is named by its import alone. */
	expect_plan(
		"import.http \"test\" { url = \"http://a/b/c\" }\ntest.any \"a\" { value = 1 }\n"
		"import.http \"test\" { url = \"http://a\" }\n",
		"f:1:1: warning: what import.http.test brings is not checked: it comes when the "
		"agent runs\n"
		"    1 | import.http \"test\" { url = \"http://a/b/c\" }\n"
		"      | ^~~~~~~~~~~\n"
		"f:3:1: error: import.http \"test\" is defined twice\n"
		"    3 | import.http \"test\" { url = \"http://a\" }\n"
		"      | ^~~~~~~~~~~\n"
		"  it stands at f:1:1 already\n");
	expect_fetched(IMPORT "test.any \"a\" { value = import.http.m.content }\n", ONE, NULL,
		       "f:2:24: error: import.http.m exports no \"content\"\n"
		       "    2 | test.any \"a\" { value = import.http.m.content }\n"
		       "      |                        ^~~~~~~~~~~~~~~~~~~~~\n"
		       "  it exports nothing\n");
}

/* Where it is to be asked for may be a value, too. */
TEST(a_url_may_be_a_value)
{
	struct supplied *s = supplied_new();
	char *got;

	expect(s);
	got = plan_with(s, STR("test.value \"v\" {}\n"
			       "import.http \"m\" { url = test.value.v.data }\nm.one \"x\" { }\n"));
	expect_str(str_of(got), "import.http.m waits for test.value.v\n"
				"m.one.x waits for import.http.m, whatever it is\n"
				"node test.value.v: {}\n");
	free(got);
	supplied_free(s);
}

/* A module is looked for before there are components. What its URL lacks then is no fault if it
 * comes, and is told if it does not. */
TEST(a_url_may_lead_to_what_stands_behind)
{
	static const char given[] =
		"declare \"d\" {\n  argument \"u\" { }\n"
		"  import.http \"m\" { url = argument.u.value }\n}\nd \"a\" { u = %s }\n"
		"test.value \"late\" {}\n";
	struct supplied *s = supplied_new();
	char text[400], *got;

	expect(s);
	snprintf(text, sizeof(text), given, "test.value.late.data");
	got = plan_with(s, str_of(text));
	expect_str(str_of(got), "d.a/import.http.m waits for test.value.late\n"
				"node test.value.late: {}\n");
	free(got);
	snprintf(text, sizeof(text), given, "test.value.none.data");
	got = plan_with(s, str_of(text));
	expect(strstr(got, "f:5:13: error: there is no component \"test.value.none\"\n"));
	free(got);
	got = plan_with(s, STR("import.http \"m\" { url = local.file.f.content }\n"
			       "local.file \"f\" { filename = \"/nowhere\" }\n"));
	expect(strstr(got, "f:2:29: error: cannot read the file /nowhere: "));
	free(got);
	supplied_free(s);
}

/* Without the plugin that fetches each import is an error, and so is what names one. */
TEST(nobody_fetches)
{
	struct registry registry = {.no_import = true};
	struct source source = {"f", STR(IMPORT "import.http \"n\" { url = import.http.m.x }\n")};
	char *got = plan_text_of(&source, 1, &registry);

	expect(strstr(got, "f:1:1: error: there is no component \"import.http\"\n"));
	expect(strstr(got, "f:2:1: error: there is no component \"import.http\"\n"));
	free(got);
}

#define TEXT "import.string \"m\" { content = test.value.v.data }\n"
#define V    "test.value \"v\" { }\n"

/* A plan of `text` where test.value.v has sent `module` (NULL: nothing). */
static void expect_text(const char *text, const char *module, const char *expected)
{
	struct supplied *s = supplied_new();

	expect(s);
	if (module)
		give(s, "test.value.v", module);
	expect_with(s, text, expected);
}

/* What another component supplies may be a module: wherever that one stands, and whoever names the
 * module. In the plan there is what it brings. */
TEST(a_text_may_be_a_value)
{
	static const char uses[] =
		TEXT "m.one \"x\" { x = 3 }\n"
		     "test.any \"b\" { value = m.one.x.e }\n"
		     "foreach \"l\" {\n  collection = m.one.x.e\n  var = \"v\"\n"
		     "  template {\n    test.any \"d\" { value = v }\n  }\n}\n" V;

	expect_text(uses, NULL,
		    "import.string.m waits for test.value.v\n"
		    "test.any.b waits for import.string.m\n"
		    "m.one.x waits for import.string.m, whatever it is\n"
		    "foreach.l waits for import.string.m, whatever it is\n"
		    "node test.value.v: {}\n");
	expect_text(uses, ONE,
		    "node m.one.x/test.any.a: {value=3}\n"
		    "node test.any.b: {value=[1 2]}\n"
		    "node test.value.v: {}\n"
		    "node foreach.l/1/test.any.d: {value=1}\n"
		    "node foreach.l/2/test.any.d: {value=2}\n");
	expect_text(TEXT V, "declare \"one\" {\n<html>\n}",
		    "content of import.string.m:2:1: error: expected the name of a block or an "
		    "argument, not <\n"
		    "    2 | <html>\n"
		    "      | ^\n");
	expect_plan(TEXT V,
		    "f:1:1: warning: what import.string.m brings is not checked: it comes when the "
		    "agent runs\n"
		    "    1 | import.string \"m\" { content = test.value.v.data }\n"
		    "      | ^~~~~~~~~~~~~\n"
		    "import.string.m waits for test.value.v\n"
		    "node test.value.v: {}\n");
	expect_text("import.string \"m\" { content = test.value.w.data }\n" V, NULL,
		    "f:1:31: error: there is no component \"test.value.w\"\n"
		    "    1 | import.string \"m\" { content = test.value.w.data }\n"
		    "      |                               ^~~~~~~~~~~~~~~~~\n"
		    "  did you mean \"test.value.v\"?\n");
	expect_text("import.file \"m\" { filename = test.value.v.data }\n" V, ONE,
		    "f:1:30: error: there is no component \"test.value.v\"\n"
		    "    1 | import.file \"m\" { filename = test.value.v.data }\n"
		    "      |                              ^~~~~~~~~~~~~~~~~\n");
}

/* It may be an entry, and a secret, and made of several. */
TEST(a_text_may_be_an_entry)
{
	const struct andiron_value one = {.kind = ANDIRON_VALUE_STRING,
					  .flags = ANDIRON_VALUE_SECRET,
					  .string = {ONE, strlen(ONE)}};
	const struct andiron_str key = {"k", 1};
	const struct andiron_value map = {
		.kind = ANDIRON_VALUE_MAP, .keys = &key, .items = &one, .n_items = 1};
	struct supplied *s = supplied_new();
	char *got;

	expect(s);
	give_value(s, "test.value.v", "data", &map);
	got = plan_with(s, STR("import.string \"m\" { content = test.value.v.data[\"k\"] + "
			       "`declare \"two\" { }` }\nm.one \"x\" { }\nm.two \"y\" { }\n" V));
	expect_str(str_of(got), "node m.one.x/test.any.a: {value=false}\nnode test.value.v: {}\n");
	free(got);
	got = plan_with(s, STR(TEXT V));
	expect(strstr(got, "f:1:31: error: content must be a string"));
	free(got);
	supplied_free(s);
}

/* Of each instance and each round it is their own. */
TEST(a_text_of_each_scope)
{
	static const char inside[] =
		"test.value \"v\" { value = true }\n"
		"  import.string \"m\" { content = test.value.v.data }\n  m.one \"x\" { }\n";
	struct supplied *s = supplied_new();
	struct buf text = BUF_NULL;
	char *got;

	expect(s);
	give(s, "d.a/test.value.v", ONE);
	give(s, "foreach.f/2/test.value.v", ONE);
	buf_printf(&text,
		   "declare \"d\" {\n  %s}\nd \"a\" { }\nd \"b\" { }\nforeach \"f\" {\n"
		   "  collection = [1, 2]\n  var = \"i\"\n  template {\n  %s  }\n}\n",
		   inside, inside);
	got = plan_with(s, buf_str(&text));
	expect_str(str_of(got),
		   "d.b/import.string.m waits for d.b/test.value.v\n"
		   "foreach.f/1/import.string.m waits for foreach.f/1/test.value.v\n"
		   "d.b/m.one.x waits for d.b/import.string.m, whatever it is\n"
		   "foreach.f/1/m.one.x waits for foreach.f/1/import.string.m, whatever it is\n"
		   "node d.a/test.value.v: {value=true}\n"
		   "node d.a/m.one.x/test.any.a: {value=false}\n"
		   "node d.b/test.value.v: {value=true}\n"
		   "node foreach.f/1/test.value.v: {value=true}\n"
		   "node foreach.f/2/test.value.v: {value=true}\n"
		   "node foreach.f/2/m.one.x/test.any.a: {value=false}\n");
	free(got);
	buf_free(&text);
	supplied_free(s);
}

/* What needs itself is refused, also where its text is there from before. */
TEST(texts_in_circles)
{
	static const char another[] =
		"import.string \"m\" { content = n.one.x.e }\nn.one \"x\" { }\n"
		"import.string \"n\" { content = m.one.x.e }\nm.one \"x\" { }\n";

	expect_text("import.string \"m\" { content = m.one.x.e }\nm.one \"x\" { }\n", NULL,
		    "f:1:31: error: import.string.m refers to itself\n"
		    "    1 | import.string \"m\" { content = m.one.x.e }\n"
		    "      |                               ^~~~~~~~~\n");
	expect_text(another, NULL,
		    "f:1:31: error: these components feed each other in a circle: import.string.m "
		    "→ import.string.n → import.string.m\n"
		    "    1 | import.string \"m\" { content = n.one.x.e }\n"
		    "      |                               ^~~~~~~~~\n"
		    "  import.string.m → import.string.n at f:3:31\n"
		    "  import.string.n → import.string.m at f:1:31\n");
	for (int there = 0; there < 2; there++)
		expect_text(TEXT "m.one \"x\" { }\n"
				 "test.value \"v\" { value = m.one.x.e[0] == 1 }\n",
			    there ? ONE : NULL,
			    "f:1:31: error: these components feed each other in a circle: "
			    "import.string.m → test.value.v → import.string.m\n"
			    "    1 | import.string \"m\" { content = test.value.v.data }\n"
			    "      |                               ^~~~~~~~~~~~~~~~~\n"
			    "  import.string.m → test.value.v at f:3:26\n"
			    "  test.value.v → import.string.m at f:1:31\n");
	expect_fetched("import.http \"m\" { url = m.one.x.e }\nm.one \"x\" { }\n",
		       "declare \"one\" { export \"e\" { value = \"http://a\" } }\n", NULL,
		       "f:1:25: error: import.http.m refers to itself\n"
		       "    1 | import.http \"m\" { url = m.one.x.e }\n"
		       "      |                         ^~~~~~~~~\n");
}

/* One that another brings is known with that one, so it is checked like all that stands in a file;
 * but not without end. */
TEST(texts_of_texts)
{
	struct buf text = BUF_NULL;
	char *got;

	expect_plan("import.string \"n\" { content = m.one.x.text }\nn.two \"y\" { }\n"
		    "m.one \"x\" { }\nimport.string \"m\" { content = d.a.text }\nd \"a\" { }\n"
		    "declare \"d\" {\n  export \"text\" { value = `declare \"one\" {\n"
		    "    export \"text\" { value = \"declare \\\"two\\\" {\\n test.any \\\"b\\\" "
		    "{}\\n}\" }\n  }` }\n}\n",
		    "node n.two.y/test.any.b: {}\n");
	for (int n = 7; n < 9; n++) {
		buf_clear(&text);
		for (int i = 0; i < n; i++)
			buf_printf(&text,
				   "import.string \"m%d\" { content = m%d.one.x.e }\n"
				   "m%d.one \"x\" { t = d.a.e }\n",
				   i, i + 1, i + 1);
		buf_printf(&text,
			   "import.string \"m%d\" { content = d.a.e }\nd \"a\" { }\n"
			   "declare \"d\" {\n  export \"e\" { value = `declare \"one\" {\n"
			   "    argument \"t\" { }\n    export \"e\" { value = argument.t.value }\n"
			   "  }` }\n}\ntest.any \"a\" { }\n",
			   n);
		got = plan_with(NULL, buf_str(&text));
		if (n == 7)
			expect_str(str_of(got), "node test.any.a: {}\n");
		else
			expect(strstr(got, "f:1:1: error: modules need each other more than 8 "
					   "levels deep\n"));
		free(got);
	}
	buf_free(&text);
}

/* One within another: each under a name of its own, and its path is the folder of the URL. */
TEST(modules_within_each_other)
{
	static const char outer[] = "import.http \"m\" { url = module_path + \"d\" }\n"
				    "declare \"two\" {\n  m.one \"y\" { x = module_path }\n}\n";

	expect_fetched(IMPORT "m.two \"x\" { }\n", outer, ONE,
		       NODE "node import.http.m/import.http.m: {url=\"http://a/b/d\"}\n"
			    "node m.two.x/m.one.y/test.any.a: {value=\"http://a/b/\"}\n");
	expect_fetched(
		IMPORT "m.two \"x\" { }\n", outer, NULL,
		"m.two.x/m.one.y waits for import.http.m/import.http.m, whatever it is\n" NODE
		"node import.http.m/import.http.m: {url=\"http://a/b/d\"}\n");
}

/* Each is an error at its place in what was fetched. */
TEST(what_is_fetched_may_be_anything)
{
	expect_fetched(IMPORT, "<html>", NULL,
		       "content of import.http.m:1:1: error: expected the name of a block or an "
		       "argument, not <\n"
		       "    1 | <html>\n"
		       "      | ^\n");
	expect_fetched(IMPORT, "test.any \"a\" { }", NULL,
		       "content of import.http.m:1:1: error: test.any cannot stand in a module\n"
		       "    1 | test.any \"a\" { }\n"
		       "      | ^~~~~~~~\n"
		       "  a module holds blocks of declare and import\n");
	expect_fetched(IMPORT "m.one \"x\" { }\n",
		       "import.http \"again\" { url = \"http://a/\" + \"b/c\" }\n" ONE, NULL,
		       "content of import.http.m:1:1: error: a module imports itself: import.http "
		       "\"again\" has the URL of what it stands in\n"
		       "    1 | import.http \"again\" { url = \"http://a/\" + \"b/c\" }\n"
		       "      | ^~~~~~~~~~~\n");
	expect_fetched(IMPORT "m.one \"x\" { }\n",
		       "import.http \"m\" { url = \"http://a/2\" }\n" ONE,
		       "declare \"d\" { import.http \"m\" { url = \"http://a/b/c\" } }\n",
		       NODE "node import.http.m/import.http.m: {url=\"http://a/2\"}\n"
			    "node m.one.x/test.any.a: {value=false}\n");
}

/* A server that gives another module to each level, or many at once, comes to an end. */
TEST(what_is_fetched_is_bounded)
{
	struct supplied *s = supplied_new();
	struct buf text = BUF_NULL;
	char id[200] = "import.http.m", module[100], *got;

	expect(s);
	for (int i = 0; i < 10; i++) {
		snprintf(module, sizeof(module), "import.http \"m\" { url = \"http://a/%d\" }\n",
			 i);
		give(s, id, module);
		snprintf(id + strlen(id), sizeof(id) - strlen(id), "/import.http.m");
	}
	got = plan_with(s, STR(IMPORT));
	expect(strstr(got, "modules that are fetched import each other more than 8 levels deep\n"));
	free(got);
	for (int i = 0; i < 65; i++)
		buf_printf(&text, "import.http \"m%d\" { url = \"http://a/\" }\n", i);
	got = plan_with(s, buf_str(&text));
	expect(strstr(got, "f:65:1: error: more than 64 modules are fetched\n"));
	free(got);
	buf_free(&text);
	supplied_free(s);
}

/* The agent keeps what any component may need, as long as one may come. */
TEST(what_may_come_is_known)
{
	struct supplied *s = supplied_new();
	struct source source = {"f", STR(IMPORT "m.one \"x\" { }\n")};
	struct registry registry = {0};

	give(s, "import.http.m", ONE);
	for (int there = 0; there < 2; there++) {
		struct diags diags = {0};
		struct plan *plan = NULL;

		expect_eq(plan_build_with(&source, 1, &registry, there ? s : NULL, &diags, &plan),
			  0);
		expect(plan->may_bring == (there ? NULL : &registry));
		plan_free(plan);
		diags_free(&diags);
	}
	supplied_free(s);
}

static int build(void *context)
{
	static const char text[] = IMPORT
		"m.two \"x\" { }\ntest.any \"b\" { value = m.two.x.e }\n"
		"import.string \"n\" { content = d.a.e }\ndeclare \"d\" {\n"
		"  export \"e\" { value = \"declare \\\"o\\\" { }\" }\n}\n"
		"d \"a\" { }\nn.o \"p\" { }\n";
	static const char *const modules[] = {
		"import.http \"m\" { url = module_path + \"d\" }\n"
		"declare \"two\" {\n  m.one \"y\" { x = module_path }\n"
		"  export \"e\" { value = m.one.y.e }\n}\n",
		ONE,
	};
	struct source source = {"f", str_of(text)};
	struct registry registry = {0};
	struct supplied *s = supplied_new();
	int r = s ? 0 : -ENOMEM;

	for (size_t i = 0; i < 3 && r == 0; i++) {
		struct andiron_value v = {.kind = ANDIRON_VALUE_STRING};
		struct diags diags = {0};
		struct plan *plan = NULL;

		r = plan_build_with(&source, 1, &registry, s, &diags, &plan);
		plan_free(plan);
		diags_free(&diags);
		if (r < 0 || i == 2)
			break;
		v.string = (struct andiron_str){modules[i], strlen(modules[i])};
		r = supplied_set(s, i ? "import.http.m/import.http.m" : "import.http.m", "content",
				 &v);
		if (r == 1) {
			expect_eq(supplied_try_all(s), 1);
			supplied_end(s, 0);
			r = 0;
		}
	}
	supplied_free(s);
	return r;
}

/* Every allocation may fail. */
TEST(modules_survive_out_of_memory)
{
	test_each_failing_allocation(build, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* declare, import and foreach, by the plans that come out. */
#include "host/lang/tests/test-lang.h"

#include <stdlib.h>
#include <unistd.h>

#define WRITER "pyroscope.write \"w\" {\n  endpoint {\n    url = \"http://a\"\n  }\n}\n"
#define WRITES "{endpoint=[{url=\"http://a\" remote_timeout=10000000000*}]}\n"

TEST(declare_is_its_components)
{
	expect_plan("pods \"all\" {\n  role = \"node\"\n}\n"
		    "declare \"pods\" {\n"
		    "  argument \"role\" {}\n"
		    "  argument \"token\" {\n    optional = true\n    default  = \"t\"\n  }\n"
		    "  discovery.kubernetes \"p\" {\n"
		    "    role         = argument.role.value\n"
		    "    bearer_token = argument.token.value\n"
		    "  }\n"
		    "}\n",
		    "node pods.all/discovery.kubernetes.p: {role=\"node\" bearer_token=\"t\"?}\n");
}

/* Exports lead out, arguments lead in, and two instances do not meet. */
TEST(arguments_and_exports)
{
	expect_plan("declare \"pods\" {\n"
		    "  argument \"to\" {}\n"
		    "  discovery.kubernetes \"p\" {\n    role = \"pod\"\n  }\n"
		    "  export \"found\" {\n    value = discovery.kubernetes.p.targets\n  }\n"
		    "  export \"to\" {\n    value = argument.to.value\n  }\n"
		    "}\n"
		    "pods \"a\" {\n  to = [pyroscope.relabel.n.receiver]\n}\n"
		    "pods \"b\" {\n  to = pods.a.to\n}\n"
		    "discovery.relabel \"r\" {\n"
		    "  targets = array.concat(pods.a.found, pods.b.found)\n"
		    "}\n"
		    "pyroscope.relabel \"n\" {\n  forward_to = []\n}\n"
		    "pyroscope.relabel \"m\" {\n  forward_to = pods.b.to\n}\n",
		    "f:22:1: warning: pyroscope.relabel.n sends its profiles to nobody\n"
		    "   22 | pyroscope.relabel \"n\" {\n"
		    "      | ^~~~~~~~~~~~~~~~~\n"
		    "  name a writer's receiver in forward_to\n"
		    "node pods.a/discovery.kubernetes.p: {role=\"pod\"}\n"
		    "node pods.b/discovery.kubernetes.p: {role=\"pod\"}\n"
		    "node discovery.relabel.r: {rule=[]*}\n"
		    "node pyroscope.relabel.m: {forward_to=[<pyroscope.relabel.n>] lines=false*}\n"
		    "node pyroscope.relabel.n: {forward_to=[] lines=false*}\n"
		    "edge pods.a/discovery.kubernetes.p.targets → discovery.relabel.r.targets #0\n"
		    "edge pods.b/discovery.kubernetes.p.targets → discovery.relabel.r.targets #1\n"
		    "edge pyroscope.relabel.m.forward_to → pyroscope.relabel.n.receiver #0\n");
}

TEST(nested_and_looked_into)
{
	expect_plan("declare \"outer\" {\n"
		    "  argument \"where\" {}\n"
		    "  declare \"inner\" {\n"
		    "    argument \"x\" {}\n"
		    "    test.any \"a\" {\n      value = argument.x.value\n    }\n"
		    "    export \"map\" {\n      value = {\"k\" = argument.x.value}\n    }\n"
		    "  }\n"
		    "  inner \"i\" {\n    x = argument.where.value.name[1]\n  }\n"
		    "  test.any \"b\" {\n    value = inner.i.map.k\n  }\n"
		    "}\n"
		    "outer \"o\" {\n  where = {name = [1, 2]}\n}\n",
		    "node outer.o/inner.i/test.any.a: {value=2}\n"
		    "node outer.o/test.any.b: {value=2}\n");
}

TEST(foreach_goes_round)
{
	expect_plan("foreach \"each\" {\n"
		    "  collection = [{n = 1}, {n = 2}]\n"
		    "  var        = \"it\"\n"
		    "  template {\n"
		    "    test.any \"a\" {\n"
		    "      value = [it.n, constants.hostname == \"\"]\n    }\n"
		    "    test.any \"b\" {\n      value = it\n    }\n"
		    "  }\n"
		    "}\n",
		    "node foreach.each/1/test.any.a: {value=[1 false]}\n"
		    "node foreach.each/1/test.any.b: {value={n=1}}\n"
		    "node foreach.each/2/test.any.a: {value=[2 false]}\n"
		    "node foreach.each/2/test.any.b: {value={n=2}}\n");
}

/* Every one of these is refused, with its place. */
TEST(what_cannot_be)
{
	expect_plan("declare \"a\" {\n  a \"b\" {}\n}\na \"c\" {}\n",
		    "f:2:3: error: declare \"a\" contains itself\n"
		    "    2 |   a \"b\" {}\n"
		    "      |   ^\n");
	expect_plan("declare \"a\" {\n  argument \"x\" {}\n}\n"
		    "a \"c\" {\n  y = 1\n}\n"
		    "a {}\n"
		    "argument \"z\" {}\n",
		    "f:4:1: error: a needs the argument x\n"
		    "    4 | a \"c\" {\n"
		    "      | ^\n"
		    "f:5:3: error: a \"c\" has no argument \"y\"\n"
		    "    5 |   y = 1\n"
		    "      |   ^\n"
		    "  did you mean \"x\"?\n"
		    "f:7:1: error: a needs a label\n"
		    "    7 | a {}\n"
		    "      | ^\n"
		    "  write a \"NAME\" { … }\n"
		    "f:8:1: error: the block argument stands inside declare only\n"
		    "    8 | argument \"z\" {}\n"
		    "      | ^~~~~~~~\n");
	expect_plan("declare \"a\" {\n"
		    "  argument \"x\" {}\n"
		    "  export \"e\" {\n    value = argument.x.value\n  }\n"
		    "}\n"
		    "a \"c\" {\n  x = a.d.e\n}\n"
		    "a \"d\" {\n  x = a.c.e\n}\n"
		    "test.any \"t\" {\n  value = a.c.e\n}\n",
		    "f:11:7: error: the value of e needs itself\n"
		    "   11 |   x = a.c.e\n"
		    "      |       ^~~~~\n");
	expect_plan("declare \"a\" {\n  test.any \"t\" {\n    value = test.any.u.x\n  }\n}\n"
		    "test.any \"u\" {}\n"
		    "a \"c\" {}\n"
		    "test.any \"v\" {\n  value = a.c.none\n}\n"
		    "test.any \"w\" {\n  value = argument.x.value\n}\n",
		    "f:3:13: error: there is no component \"test.any.u\"\n"
		    "    3 |     value = test.any.u.x\n"
		    "      |             ^~~~~~~~~~~~\n"
		    "  what stands outside a declare comes into it as an argument\n"
		    "f:9:11: error: a.c exports no \"none\"\n"
		    "    9 |   value = a.c.none\n"
		    "      |           ^~~~~~~~\n"
		    "  it exports nothing\n"
		    "f:12:11: error: there is no argument.x.value here\n"
		    "   12 |   value = argument.x.value\n"
		    "      |           ^~~~~~~~~~~~~~~~\n");
	expect_plan("foreach \"f\" {\n"
		    "  collection = \"text\"\n"
		    "  var        = \"x\"\n"
		    "  template {}\n"
		    "}\n",
		    "f:2:16: error: foreach goes over a list or over targets, not over a string\n"
		    "    2 |   collection = \"text\"\n"
		    "      |                ^~~~~~\n");
}

/* Each of 40 levels makes two of the next. */
TEST(what_grows_is_bounded)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);
	char *plan;

	for (int i = 0; i < 40; i++)
		fprintf(f,
			"declare \"a%d\" {\n  a%d \"l\" {}\n  a%d \"r\" {}\n"
			"  export \"e\" {\n    value = [a%d.l.e, a%d.r.e]\n  }\n}\n",
			i, i + 1, i + 1, i + 1, i + 1);
	fprintf(f, "declare \"a40\" {\n  export \"e\" {\n    value = 1\n  }\n}\na0 \"x\" {}\n"
		   "test.any \"t\" {\n  value = a0.x.e\n}\n");
	fclose(f);
	plan = plan_text(str_of(text));
	expect(strstr(plan, "more than"));
	free(plan);
	free(text);
}

TEST(import_of_text)
{
	expect_plan("import.string \"lib\" {\n"
		    "  content = `declare \"one\" {\n"
		    "    test.any \"a\" {\n      value = 1\n    }\n"
		    "  }`\n"
		    "}\n"
		    "lib.one \"x\" {}\n",
		    "node lib.one.x/test.any.a: {value=1}\n");
	expect_plan("import.string \"lib\" {\n  content = `test.any \"a\" {}`\n}\n"
		    "import.git \"g\" {\n  repository = \"x\"\n}\n"
		    "lib.two \"x\" {}\n"
		    "g.one \"x\" {}\n",
		    "content of f:2:1:1: error: test.any cannot stand in a module\n"
		    "    1 | test.any \"a\" {}\n"
		    "      | ^~~~~~~~\n"
		    "  a module holds blocks of declare and import\n"
		    "f:4:1: error: import.git is not supported\n"
		    "    4 | import.git \"g\" {\n"
		    "      | ^~~~~~~~~~\n"
		    "  the agent has no Git in it: keep a clone beside it, and name the module's "
		    "file in import.file, which follows its changes\n");
}

/* A label takes all names that begin so, those of built-in components too. */
TEST(a_label_is_a_namespace)
{
	expect_plan("local.file \"x\" {\n  a = 1\n}\n"
		    "import.string \"local\" {\n"
		    "  content = `declare \"file\" {\n"
		    "    argument \"a\" {}\n"
		    "    local.file \"own\" {\n      filename = \"/etc/passwd\"\n    }\n"
		    "    test.any \"t\" {\n      value = argument.a.value\n    }\n"
		    "    export \"content\" {\n      value = 2\n    }\n"
		    "  }`\n"
		    "}\n"
		    "test.any \"b\" {\n  value = local.file.x.content\n}\n"
		    "declare \"d\" {\n  local.file \"y\" {\n    a = 3\n  }\n}\n"
		    "d \"z\" {}\n",
		    "node local.file.x/test.any.t: {value=1}\n"
		    "node test.any.b: {value=2}\n"
		    "node d.z/local.file.y/test.any.t: {value=3}\n");
	expect_plan("import.string \"local\" {\n  content = `declare \"fill\" {}`\n}\n"
		    "local.file \"x\" {}\n"
		    "import.string \"test\" {\n  content = `declare \"one\" {}`\n}\n"
		    "test.any \"a\" {\n  value = 1\n}\n"
		    "test.any \"b\" {\n  value = test.any.a.out\n}\n",
		    "f:4:1: error: the module local declares no \"file\"\n"
		    "    4 | local.file \"x\" {}\n"
		    "      | ^~~~~~~~~~\n"
		    "  did you mean \"fill\"?\n"
		    "f:8:1: error: the module test declares no \"any\"\n"
		    "    8 | test.any \"a\" {\n"
		    "      | ^~~~~~~~\n"
		    "  as in Alloy, an import takes all names that begin with its label: choose "
		    "another label\n"
		    "f:11:1: error: the module test declares no \"any\"\n"
		    "   11 | test.any \"b\" {\n"
		    "      | ^~~~~~~~\n"
		    "  as in Alloy, an import takes all names that begin with its label: choose "
		    "another label\n");
}

#define ANY(name, value)                                                                           \
	"declare \\\"" name "\\\" {\\n test.any \\\"a\\\" {\\n value = " value "\\n }\\n}"

/* An instance may say what its declare imports: then each has its own, and all that does not depend
 * on it is read once. */
TEST(imports_of_an_instance)
{
	expect_plan("declare \"d\" {\n"
		    "  argument \"text\" {}\n"
		    "  argument \"more\" {}\n"
		    "  import.string \"m\" {\n    content = argument.text.value\n  }\n"
		    "  m.one \"x\" {}\n"
		    "  declare \"in\" {\n    test.any \"b\" {\n      value = 7\n    }\n  }\n"
		    "  in \"i\" {}\n"
		    "}\n"
		    "d \"a\" {\n  text = \"" ANY("one", "1") "\"\n  more = test.any.t.none\n}\n"
		    "d \"b\" {\n  text = \"" ANY("one", "2") "\"\n  more = 0\n}\n",
		    "node d.a/m.one.x/test.any.a: {value=1}\n"
		    "node d.a/in.i/test.any.b: {value=7}\n"
		    "node d.b/m.one.x/test.any.a: {value=2}\n"
		    "node d.b/in.i/test.any.b: {value=7}\n");
	expect_plan("declare \"d\" {\n  import.string \"m\" {\n    content = \"x {}\"\n  }\n}\n"
		    "d \"a\" {}\nd \"b\" {}\n",
		    "content of f:3:1:1: error: x cannot stand in a module\n"
		    "    1 | x {}\n      | ^\n"
		    "  a module holds blocks of declare and import\n");
	expect_plan("declare \"d\" {\n"
		    "  argument \"text\" {}\n"
		    "  import.file \"m\" {\n    filename = argument.text.value\n  }\n"
		    "}\n"
		    "test.value \"v\" {}\n"
		    "d \"a\" {\n  text = test.value.v.data\n}\n",
		    "f:4:16: error: files of modules are read before the agent runs, so filename "
		    "cannot be what test.value.v supplies\n"
		    "    4 |     filename = argument.text.value\n"
		    "      |                ^~~~~~~~~~~~~~~~~~~\n"
		    "  give import.string what it supplies\n");
}

/* A template is like a file: it declares and imports, each round for itself, and what it declares
 * sees the variable. */
TEST(templates_declare_and_import)
{
	expect_plan("foreach \"f\" {\n  collection = [1, 2]\n  var = \"x\"\n  template {\n"
		    "    declare \"d\" {\n"
		    "      declare \"in\" {\n"
		    "        test.any \"b\" {\n          value = [x]\n        }\n      }\n"
		    "      in \"i\" {}\n    }\n"
		    "    d \"a\" {}\n"
		    "    import.string \"m\" {\n"
		    "      content = string.format(\"" ANY("one", "%d") "\", x)\n    }\n"
		    "    m.one \"y\" {}\n"
		    "  }\n}\n",
		    "node foreach.f/1/d.a/in.i/test.any.b: {value=[1]}\n"
		    "node foreach.f/1/m.one.y/test.any.a: {value=1}\n"
		    "node foreach.f/2/d.a/in.i/test.any.b: {value=[2]}\n"
		    "node foreach.f/2/m.one.y/test.any.a: {value=2}\n");
}

/* What imports itself with what it is given ends, and so do its errors. */
TEST(modules_that_are_given_themselves_end)
{
	char *plan = plan_text(
		STR("declare \"d\" {\n  argument \"t\" {}\n"
		    "  import.string \"m\" {\n    content = argument.t.value\n  }\n"
		    "  m.d \"x\" {\n    t = argument.t.value\n  }\n"
		    "  m.d \"y\" {\n    t = argument.t.value\n  }\n}\n"
		    "d \"a\" {\n  t = `declare \"d\" {\n  argument \"t\" {}\n"
		    "  import.string \"m\" {\n    content = argument.t.value\n  }\n"
		    "  m.d \"x\" {\n    t = argument.t.value\n  }\n"
		    "  m.d \"y\" {\n    t = argument.t.value\n  }\n}`\n}\n"));

	expect(strstr(plan, "modules are imported") || strstr(plan, "levels deep"));
	free(plan);
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	expect(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

/* A folder is one module, and a module finds what lies beside it. */
TEST(import_of_files)
{
	char folder[] = "/tmp/andiron-modules-XXXXXX", path[200], text[600], *plan;

	expect(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/one.alloy", folder);
	write_file(path, "declare \"one\" {\n  two \"t\" {}\n}\n");
	snprintf(path, sizeof(path), "%s/two.alloy", folder);
	write_file(path, "declare \"two\" {\n"
			 "  import.file \"three\" {\n"
			 "    filename = file.path_join(module_path, \"three.txt\")\n  }\n"
			 "  three.three \"t\" {}\n"
			 "}\n");
	snprintf(path, sizeof(path), "%s/three.txt", folder);
	write_file(path, "declare \"three\" {\n  test.any \"a\" {\n    value = 3\n  }\n}\n");
	snprintf(text, sizeof(text),
		 "import.file \"m\" {\n  filename = \"%s\"\n}\nm.one \"x\" {}\n", folder);
	plan = plan_text(str_of(text));
	expect_str(str_of(plan), "node m.one.x/two.t/three.three.t/test.any.a: {value=3}\n");
	free(plan);
	/* By the content of a file that stands anywhere. */
	snprintf(text, sizeof(text),
		 "import.string \"m\" {\n  content = local.file.m.content\n}\n"
		 "local.file \"m\" {\n  filename = \"%s\"\n}\nm.three \"x\" {}\n",
		 path);
	plan = plan_text(str_of(text));
	expect(strstr(plan, "node m.three.x/test.any.a: {value=3}\n"));
	free(plan);
	/* One that imports itself. */
	snprintf(text, sizeof(text), "import.file \"m\" {\n  filename = \"%s\"\n}\n", path);
	write_file(path, text);
	plan = plan_text(str_of(text));
	expect(strstr(plan, "more than 32 levels deep"));
	free(plan);
	unlink(path);
	plan = plan_text(str_of(text));
	expect(strstr(plan, "cannot read the module"));
	free(plan);
	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s.alloy", folder, i ? "one" : "two");
		unlink(path);
	}
	rmdir(folder);
}

/* A block that is no component is known as one: misspelt, it is likened to it; where it cannot
 * stand, that is all that is said. */
TEST(blocks_are_no_components)
{
	char *plan = plan_text(STR("loging {}\n"));

	expect(strstr(plan, "there is no component \"loging\"") &&
	       strstr(plan, "did you mean \"logging\"?"));
	free(plan);
	expect_plan("foreach \"f\" {\n  collection = [1]\n  var = \"x\"\n  template {\n"
		    "    argument \"a\" {}\n  }\n}\n",
		    "f:5:5: error: the block argument stands inside declare only\n"
		    "    5 |     argument \"a\" {}\n"
		    "      |     ^~~~~~~~\n");
}

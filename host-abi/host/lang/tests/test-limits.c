/* SPDX-License-Identifier: Apache-2.0 */
/* Plans under strain: what is no text, what is too much, and no memory. */
#include "host/lang/tests/test-lang.h"

#include "base/buf.h"

#include <errno.h>

static void expect_refused(struct str text, const char *expected)
{
	char *got = plan_text(text);

	if (strcmp(got, expected) != 0)
		test_fail(__FILE__, __LINE__, "got:\n%.2000s\nexpected:\n%s", got, expected);
	free(got);
}

/* One error for what is no configuration at all. */
TEST(refuses_what_is_no_text)
{
	size_t n = 100u << 20;
	char *big = calloc(1, n);

	expect(big);
	expect_refused((struct str){big, n},
		       "f: error: is 104857600 bytes long; a configuration has at most 16777216\n");
	memset(big, '\n', 16u << 20);
	expect_refused((struct str){big, 16u << 20},
		       "f: error: holds no components\n"
		       "  describe at least one, such as pyroscope.ebpf \"NAME\" { … }\n");
	free(big);
	expect_refused(STR("a\n\x7f"
			   "ELF\0\0"),
		       "f: error: is not text: line 2 holds a NUL byte\n"
		       "  is it a configuration? UTF-16 becomes UTF-8 by iconv -f UTF-16 -t UTF-8 "
		       "FILE >NEW\n");
	expect_refused(STR("a\n\nb\xff\n"), "f: error: is not UTF-8 text: line 3 breaks it\n"
					    "  save it as UTF-8\n");
	expect_refused(STR("\xff\xfe"
			   "a\0b\0"),
		       "f: error: is UTF-16 text\n"
		       "  save it as UTF-8: iconv -f UTF-16 -t UTF-8 FILE >NEW\n");
}

/* Several files are one configuration: ids are unique across them, and references reach over. */
TEST(joins_files)
{
	struct source sources[] = {
		{"a.alloy",
		 STR("pyroscope.ebpf \"e\" {\n  forward_to = [raw.write.w.receiver]\n}\n")},
		{"b.alloy", STR("\xef\xbb\xbfraw.write \"w\" {}\n")},
		{"c.alloy", STR("// empty\n\nraw.write \"w\" {}\n")},
	};
	struct registry registry = {0};
	char *got = plan_text_of(sources, 2, &registry);

	expect(strstr(got, "edge pyroscope.ebpf.e.forward_to → raw.write.w.receiver #0\n"));
	free(got);
	got = plan_text_of(sources, 3, &registry);
	expect_str(str_of(got), "c.alloy:3:1: error: raw.write.w is defined twice\n"
				"    3 | raw.write \"w\" {}\n"
				"      | ^~~~~~~~~\n"
				"  it stands at b.alloy:1:1 already\n");
	free(got);
}

TEST(says_that_a_symbolizer_is_lacking)
{
	struct source source = {"f", STR("pyroscope.ebpf \"e\" {\n"
					 "  forward_to = [pyroscope.write.w.receiver]\n"
					 "}\n"
					 "pyroscope.write \"w\" {}\n")};
	struct registry registry = {.no_symbolizer = true};
	char *got = plan_text_of(&source, 1, &registry);

	expect_str(str_of(got),
		   "f:2:17: error: pyroscope.ebpf.e sends frames without names, pyroscope.write.w "
		   "wants names, and no plugin found has a symbolizer (profile.symbolize)\n"
		   "    2 |   forward_to = [pyroscope.write.w.receiver]\n"
		   "      |                 ^~~~~~~~~~~~~~~~~~~~~~~~~~\n"
		   "  looked for plugins in\n"
		   "  /plugins\n"
		   "  /elsewhere (does not exist)\n"
		   "  /plugins/andiron-half.so was refused: the file is cut off\n");
	free(got);
}

/* A component that is andiron's own is not likened to others where its plugin is not found. */
TEST(likens_to_nothing_without_plugins)
{
	struct source source = {"f", STR("profile.file \"p\" {}\n")};
	struct registry registry = {.no_plugin = true};
	char *got = plan_text_of(&source, 1, &registry);

	expect_str(str_of(got), "f:1:1: error: there is no component \"profile.file\"\n"
				"    1 | profile.file \"p\" {}\n"
				"      | ^~~~~~~~~~~~\n"
				"  looked for plugins in\n"
				"  /plugins\n"
				"  /elsewhere (does not exist)\n"
				"  /plugins/andiron-half.so was refused: the file is cut off\n");
	free(got);
}

/* Only what this configuration adds decides about it. */
TEST(findings_were_there_before)
{
	struct source source = {"f", STR("raw.write \"w\" {}\n")};
	struct registry registry = {0};
	struct diags diags = {0};
	struct plan *plan = NULL;

	diag_add(&diags, DIAG_ERROR, (struct place){0}, NULL, "from elsewhere");
	expect_eq(plan_build(&source, 1, &registry, &diags, &plan), 0);
	expect_eq(plan->nodes.n, 1);
	expect_eq(diags.n_errors, 1);
	plan_free(plan);
	plan_free(NULL);
	diags_free(&diags);
}

TEST(bounds_components)
{
	struct buf b = BUF_NULL;
	char *got;

	for (int i = 0; i < 17000; i++)
		buf_printf(&b,
			   "discovery.relabel \"r%d\" {\n  targets = "
			   "discovery.relabel.r%d.output\n}\n",
			   i, i + 1);
	got = plan_text(buf_str(&b));
	expect(strstr(got, "error: more than 16384 components"));
	free(got);
	buf_free(&b);
}

/* A chain as long as is allowed, written from its end. */
TEST(sorts_a_long_chain)
{
	struct buf b = BUF_NULL;
	char *got, *first, *last;

	for (int i = 0; i < 16000; i++)
		buf_printf(&b,
			   "discovery.relabel \"r%d\" {\n  targets = "
			   "discovery.relabel.r%d.output\n}\n",
			   i, i + 1);
	buf_str_append(&b, STR("discovery.relabel \"r16000\" {\n  targets = []\n}\n"));
	got = plan_text(buf_str(&b));
	first = strstr(got, "node discovery.relabel.r16000:");
	last = strstr(got, "node discovery.relabel.r0:");
	expect(first == got && last > first);
	free(got);
	buf_free(&b);
}

/* Small text cannot become much memory: it is refused like any lack of it. */
TEST(bounds_memory)
{
	struct buf b = BUF_NULL;
	char *got;

	buf_str_append(&b, STR("test.any \"a\" { value = "));
	for (int i = 0; i < 60; i++)
		buf_str_append(&b, STR("array.concat("));
	buf_putc(&b, '[');
	for (int i = 0; i < 190000; i++)
		buf_str_append(&b, STR("1,"));
	buf_putc(&b, ']');
	for (int i = 0; i < 60; i++)
		buf_putc(&b, ')');
	buf_str_append(&b, STR("\n}\n"));
	got = plan_text(buf_str(&b));
	expect_str(str_of(got), "out of memory\n");
	free(got);
	buf_free(&b);
}

static int build(void *context)
{
	struct source *source = context;
	struct registry registry = {0};
	struct diags diags = {0};
	struct plan *plan = NULL;
	int r = plan_build(source, 1, &registry, &diags, &plan);

	plan_free(plan);
	diags_free(&diags);
	return r;
}

/* Every allocation may fail: nothing leaks, and a plan is whole or none. */
TEST(survives_out_of_memory)
{
	struct source source = {
		"f",
		STR("discovery.process \"p\" { join = concat(test.single.targets, [{a = 1}]) }\n"
		    "test.single {}\n"
		    "discovery.relabel \"r\" {\n"
		    "  targets = discovery.process.p.targets\n"
		    "  rule { source_labels = [\"a\", 1.5] }\n"
		    "}\n"
		    "pyroscope.ebpf \"e\" {\n"
		    "  forward_to = [pyroscope.relabel.p.receiver, pyroscope.write.w.receiver]\n"
		    "  targets = discovery.relabel.r.output\n"
		    "  ignored_threshold = 0.5\n"
		    "  default_target = {a = sys.env(\"HOME\") + `b`, a = \"\\u00e4\"}\n"
		    "}\n"
		    "pyroscope.relabel \"p\" { forward_to = [pyroscope.write.v.receiver] }\n"
		    "pyroscope . write \"v\" { }\n"
		    "pyroscope.write \"w\" {\n"
		    "  endpoint {\n    url = \"a\"\n    headers = {a = [\"b\"]}\n  }\n"
		    "}\n"
		    "profile.symbolize \"s\" {}\n"
		    "logging {}\n")};

	test_each_failing_allocation(build, &source);
}

/* So do files whose content is a value. */
TEST(a_file_survives_out_of_memory)
{
	struct source source = {"f", STR("local.file \"f\" {\n"
					 "  filename = \"/proc/self/comm\"\n"
					 "  is_secret = true\n}\n"
					 "test.any \"a\" {\n  value = local.file.f.content\n}\n")};

	test_each_failing_allocation(build, &source);
}

/* So do the library's functions that make lists and objects. */
TEST(the_library_survives_out_of_memory)
{
	struct source source = {
		"f", STR("test.any \"a\" {\n"
			 "  value = [\n"
			 "    array.group_by([{k = \"a\"}, {k = \"b\"}, {}], \"k\", false),\n"
			 "    json_path(`[{\"a\": 1}, {\"a\": 2}]`,\n"
			 "      `[?(!(@.a > 1) || @['b'])]..*`),\n"
			 "    encoding.from_yaml(\"a: &x {k: [1, 2001-01-01]}\\nb: {<<: *x}\"),\n"
			 "  ]\n"
			 "}\n")};

	test_each_failing_allocation(build, &source);
}

static int build_broken(void *context)
{
	int r = build(context);

	expect(r == -EINVAL || r == -ENOMEM);
	return r == -EINVAL ? 0 : r;
}

/* The same where there is much to complain about. */
TEST(survives_out_of_memory_while_it_complains)
{
	struct source source = {
		"f", STR("pyroscope.wirte \"w\" { endpont { } }\n"
			 "discovery.relabel \"a\" {\n  targets = discovery.relabel.b.output\n}\n"
			 "discovery.relabel \"b\" {\n  targets = discovery.relabel.a.output\n"
			 "  rlue {}\n  rule { action = \"kepe\" }\n}\n"
			 "pyroscope.ebpf \"e\" {\n  forward_to = [raw.write.x.receiver 'x'\n"
			 "  sample_rate = sys.evn(1) + {a = [true]}.b\n}\n"
			 "otelcol.x \"y\" {}\n"
			 "test.any a {\n")};

	test_each_failing_allocation(build_broken, &source);
}

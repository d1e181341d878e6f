/* SPDX-License-Identifier: Apache-2.0 */
/* local.file: the content of a file as a value, and what is said of files that give none. */
#include "host/lang/tests/test-lang.h"

#include <sys/stat.h>
#include <unistd.h>

#define FILE_BLOCK(name, more) "local.file \"" name "\" {\n  filename = \"" name "\"\n" more "}\n"

static const char *const names[] = {"text", "empty", "json", "broken", "big", "pipe"};

static void put(const char *name, const char *text, size_t n)
{
	FILE *f = fopen(name, "w");

	expect(f);
	expect_eq(fwrite(text, 1, n, f), n);
	expect_eq(fclose(f), 0);
}

static char folder[] = "/tmp/andiron-files-XXXXXX";

/* A folder to work in, so that paths are short and the same each time. */
static void enter(void)
{
	char *big = calloc(1, (1 << 20) + 1);

	expect(big);
	memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
	expect(mkdtemp(folder));
	expect_eq(chdir(folder), 0);
	put("text", "s3cret\n", 7);
	put("empty", "", 0);
	put("json", "[{\"a\": 1}, {\"a\": 2}]", 20);
	put("broken", "a\xff", 2);
	memset(big, 'x', (1 << 20) + 1);
	put("big", big, (1 << 20) + 1);
	free(big);
	expect_eq(mkfifo("pipe", 0600), 0);
}

static void leave(void)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		expect_eq(unlink(names[i]), 0);
	expect_eq(chdir("/"), 0);
	expect_eq(rmdir(folder), 0);
}

/* The content is a value like others, as it stands and also empty; blocks may come in any order. */
TEST(content_is_a_value)
{
	enter();
	expect_plan("test.any \"a\" {\n  value = string.trim_space(local.file.text.content)\n}\n"
		    FILE_BLOCK("text", "  detector = \"poll\"\n  poll_frequency = \"10s\"\n"),
		    "node test.any.a: {value=\"s3cret\"}\n");
	expect_plan("test.any \"a\" {\n  value = 1\n}\n"
		    FILE_BLOCK("text", "  detector = \"inotify\"\n  poll_frequency = \"often\"\n"),
		    "f:6:14: error: detector is \"fsnotify\" or \"poll\"\n"
		    "    6 |   detector = \"inotify\"\n"
		    "      |              ^~~~~~~~~\n"
		    "f:7:20: error: poll_frequency is a duration such as \"1m\"\n"
		    "    7 |   poll_frequency = \"often\"\n"
		    "      |                    ^~~~~~~\n");
	expect_plan(FILE_BLOCK("empty", "") "test.any \"a\" {\n"
					    "  value = [local.file.empty.content]\n}\n",
		    "node test.any.a: {value=[\"\"]}\n");
	expect_plan(FILE_BLOCK("json", "") "foreach \"f\" {\n"
					   "  collection = encoding.from_json("
					   "local.file.json.content)\n"
					   "  var = \"x\"\n"
					   "  template {\n"
					   "    test.any \"t\" {\n      value = x.a\n"
					   "    }\n  }\n}\n",
		    "node foreach.f/1/test.any.t: {value=1}\n"
		    "node foreach.f/2/test.any.t: {value=2}\n");
	/* Within a declare, named by its argument. */
	expect_plan("declare \"d\" {\n  argument \"name\" {}\n"
		    "  local.file \"f\" {\n    filename = argument.name.value\n  }\n"
		    "  test.any \"t\" {\n    value = local.file.f.content\n  }\n}\n"
		    "d \"i\" {\n  name = \"empty\"\n}\n",
		    "node d.i/test.any.t: {value=\"\"}\n");
	leave();
}

/* A secret stays one on its way, and nothing is read out of it. */
TEST(secrets_stay_secret)
{
	enter();
	expect_plan(FILE_BLOCK("text", "  is_secret = true\n") "test.any \"a\" {\n"
		    "  value = [local.file.text.content, string.trim_space(\"\" + "
		    "local.file.text.content), convert.nonsensitive(local.file.text.content)]\n}\n",
		    "node test.any.a: {value=[\"s3cret\n\"? \"s3cret\"? \"s3cret\n\"]}\n");
	expect_plan(FILE_BLOCK("text", "  is_secret = true\n") "test.any \"a\" {\n"
		    "  value = array.group_by([{k = local.file.text.content}], \"k\", true)[0].k\n"
		    "}\n",
		    "node test.any.a: {value=\"s3cret\n\"?}\n");
	expect_plan(FILE_BLOCK("text", "  is_secret = true\n") "test.any \"a\" {\n"
		    "  value = [file.path_join(\"a\", local.file.text.content), "
		    "string.join([\"a\", \"b\"], local.file.text.content)]\n}\n",
		    "node test.any.a: {value=[\"a/s3cret\n\"? \"as3cret\nb\"?]}\n");
	expect_plan(FILE_BLOCK("text", "  is_secret = true\n") "test.any \"a\" {\n"
		    "  value = string.format(\"%s\", [[local.file.text.content]])\n}\n",
		    "node test.any.a: {value=\"[[s3cret\n]]\"?}\n");
	expect_plan(FILE_BLOCK("json", "  is_secret = true\n") "test.any \"a\" {\n"
		    "  value = json_path(local.file.json.content, `[0]`)\n}\n",
		    "f:6:21: error: json_path does not look into a secret\n"
		    "    6 |   value = json_path(local.file.json.content, `[0]`)\n"
		    "      |                     ^~~~~~~~~~~~~~~~~~~~~~~\n"
		    "  convert.nonsensitive(…) says that it may be shown\n");
	leave();
}

static void expect_refused(const char *name, const char *said)
{
	char text[100], *got;

	snprintf(text, sizeof(text), "local.file \"x\" { filename = \"%s\" }\ntest.any \"a\" {}\n",
		 name);
	got = plan_text(str_of(text));
	if (!strstr(got, said))
		test_fail(__FILE__, __LINE__, "got: %s\nexpected: %s", got, said);
	free(got);
}

/* Also where nothing names the block. Nothing is waited for. */
TEST(what_is_no_text_is_refused)
{
	enter();
	expect_plan("local.file \"x\" {\n  filename = \"none\"\n}\ntest.any \"a\" {}\n",
		    "f:2:14: error: cannot read the file none: No such file or directory\n"
		    "    2 |   filename = \"none\"\n"
		    "      |              ^~~~~~\n"
		    "  check the path; the file must be there when the configuration is read\n");
	expect_refused("pipe", "cannot read the file pipe: it is no regular file\n");
	expect_refused("/dev/zero", "cannot read the file /dev/zero: it is no regular file\n");
	expect_refused(".", "cannot read the file .: Is a directory\n");
	expect_refused("big", "cannot read the file big: it is longer than 1048576 bytes\n");
	expect_refused("broken", "the file broken is not UTF-8 text\n");
	leave();
}

TEST(mistakes_in_the_block)
{
	expect_plan("local.file {\n  filename = \"a\"\n}\n",
		    "f:1:1: error: local.file needs a label\n"
		    "    1 | local.file {\n"
		    "      | ^~~~~~~~~~\n"
		    "  write local.file \"NAME\" { … }\n");
	expect_plan("local.file \"x\" {\n}\n",
		    "f:1:1: error: local.file needs the argument filename\n"
		    "    1 | local.file \"x\" {\n"
		    "      | ^~~~~~~~~~\n");
	expect_plan("local.file \"x\" {\n  filename = 1\n}\n",
		    "f:2:14: error: filename is a string, not a number\n"
		    "    2 |   filename = 1\n"
		    "      |              ^\n");
	expect_plan("local.file \"x\" {\n  filename = \"/dev/null\"\n  is_secret = 1\n}\n",
		    "f:3:15: error: is_secret is true or false, not a number\n"
		    "    3 |   is_secret = ********\n"
		    "      |               ^~~~~~~~\n");
	expect_plan("local.file \"x\" {\n  filename = local.file.x.content\n}\n",
		    "f:2:14: error: the value of content needs itself\n"
		    "    2 |   filename = local.file.x.content\n"
		    "      |              ^~~~~~~~~~~~~~~~~~~~\n");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Expressions: what a component gets for its argument `value`. */
#include "host/lang/tests/test-lang.h"
#include "testing/comma-locale.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Numbers as Alloy reads them: a leading zero is octal, else a float. */
TEST(numbers)
{
	expect_value("10", "10");
	expect_value("010", "8");
	expect_value("08", "8f");
	expect_value("0", "0");
	expect_value("1.5e2", "150f");
	expect_value("9223372036854775807", "9223372036854775807");
	expect_value("9223372036854775808", "9.22337e+18f");
	expect_value("9223372036854775808 == 9223372036854775807 + 1.0", "true");
	expect_no_value("1e999", "f:2:11: error: this number is too large\n"
				 "    2 |   value = 1e999\n"
				 "      |           ^~~~~\n");
}

/* A configuration is read as it is written, in an agent of any locale. */
TEST(numbers_do_not_follow_the_locale)
{
	test_comma_locale();
	expect_value("0.5 + 0.25 == 0.75", "true");
	expect_plan("test.count \"a\" {\n  text = 0.5\n}\n", "node test.count.a: {text=\"0.5\"}\n");
}

TEST(strings)
{
	expect_value("\"a\\tb\\x41\\101\\u00e4\\U0001f525\\\\\\\"\"", "\"a\tbAAä🔥\\\"\"");
	expect_value("`a\\n\r\n\"b\"`", "\"a\\n\n\"b\"\"");
	expect_value("\"\"", "\"\"");
	expect_no_value(
		"\"a\\'b\"",
		"f:2:13: error: \"\\'\" is no escape sequence\n"
		"    2 |   value = \"a\\'b\"\n"
		"      |             ^~\n"
		"  a backslash itself is \\\\, text without escapes goes between backticks\n");
	expect_no_value("\"\\xff\"",
			"f:2:11: error: the escapes of this string do not make UTF-8 text\n"
			"    2 |   value = \"\\xff\"\n"
			"      |           ^~~~~~\n");
}

TEST(lists_and_objects)
{
	expect_value("[1, [\"a\", null], {},]", "[1 [\"a\" null] {}]");
	expect_value("{a = 1, \"b c\" = 2, \"\" = 3, \"\\n\" = 4,}", "{a=1 b c=2 \"\"=3 \\n=4}");
	expect_value("[{a = [5, 6]}][0].a[1]", "6");
	expect_value("[{a = 1}[\"b\"]]", "[null]");
	expect_plan("test.any \"a\" {\n  value = {k = 1, k = 2}\n}\n",
		    "f:2:19: warning: the key k is given twice; this one counts\n"
		    "    2 |   value = {k = 1, k = 2}\n"
		    "      |                   ^\n"
		    "node test.any.a: {value={k=2}}\n");
}

TEST(operators_by_precedence)
{
	expect_value("1 + 2 * 3 ^ 2", "19");
	expect_value("2 ^ 3 ^ 2", "512");
	expect_value("-2 ^ 2", "4");
	expect_value("(1 + 2) * 3", "9");
	expect_value("10 - 3 - 2", "5");
	expect_value("7 / 2", "3");
	expect_value("-7 % 3", "-1");
	expect_value("7 / 2.0", "3.5f");
	expect_value("2 ^ -1", "2");
	expect_value("true || false && false", "true");
	expect_value("!(1 < 2) == (\"a\" >= \"b\")", "true");
	expect_value("1 == 1.0", "true");
	expect_value("1 == \"1\"", "false");
	expect_value("[1, {a = 2, b = 3}] == [1, {b = 3, a = 2}]", "true");
	expect_value("[1] != [2]", "true");
	expect_value("{a = 1} == {b = 1}", "false");
	expect_value("\"a\" + \"b\" + `c`", "\"abc\"");
	expect_value("9223372036854775807 + 1", "-9223372036854775808");
	expect_value("(-9223372036854775807 - 1) / -1", "-9223372036854775808");
}

TEST(operators_refuse)
{
	expect_no_value("1 / 0", "f:2:15: error: division by zero\n"
				 "    2 |   value = 1 / 0\n"
				 "      |               ^\n");
	expect_no_value("1 + \"a\"", "f:2:11: error: + cannot stand between a number and a string\n"
				     "    2 |   value = 1 + \"a\"\n"
				     "      |           ^~~~~~~\n");
	expect_no_value("!1", "f:2:11: error: ! cannot stand before a number\n"
			      "    2 |   value = !1\n"
			      "      |           ^~\n");
	expect_no_value("[1][1]", "f:2:15: error: this list has no element 1 (it holds 1)\n"
				  "    2 |   value = [1][1]\n"
				  "      |               ^\n");
	expect_no_value("{a = 1}.b", "f:2:11: error: this object has no member b\n"
				     "    2 |   value = {a = 1}.b\n"
				     "      |           ^~~~~~~~~\n");
}

TEST(environment)
{
	setenv("ANDIRON_TEST", "there", 1);
	unsetenv("ANDIRON_NONE");
	expect_value("sys.env(\"ANDIRON_TEST\") + sys.env(\"ANDIRON_NONE\")", "\"there\"");
	expect_plan("test.any \"a\" {\n  value = env(\"ANDIRON_TEST\",)\n}\n",
		    "f:2:11: warning: env is deprecated; write sys.env\n"
		    "    2 |   value = env(\"ANDIRON_TEST\",)\n"
		    "      |           ^~~\n"
		    "node test.any.a: {value=\"there\"}\n");
	expect_no_value("sys.env()", "f:2:11: error: sys.env takes one name, not 0 values\n"
				     "    2 |   value = sys.env()\n"
				     "      |           ^~~~~~~~~\n"
				     "  write sys.env(\"NAME\")\n");
}

TEST(concat_of_lists)
{
	expect_value("array.concat([1, 2], [], [3])", "[1 2 3]");
	expect_value("array.concat()", "[]");
	expect_no_value("array.concat(1)", "f:2:24: error: array.concat takes lists, not a number\n"
					   "    2 |   value = array.concat(1)\n"
					   "      |                        ^\n");
}

/* The first that is neither null nor empty nor 0, else the last; as Alloy's page limits pods to a
 * node: coalesce(env("HOSTNAME"), constants.hostname). */
TEST(coalesced)
{
	char name[256] = "", wanted[320];

	expect_value("coalesce(null, \"\", 0, 0.0, false, [], {}, \"a\", \"b\")", "\"a\"");
	expect_value("coalesce({a = 1}, [2])", "{a=1}");
	expect_value("[coalesce(), coalesce(\"\", 0)]", "[null 0]");
	expect_eq(gethostname(name, sizeof(name) - 1), 0);
	snprintf(wanted, sizeof(wanted), "node test.any.a: {value=\"%s\"}\n", name);
	unsetenv("ANDIRON_NONE");
	expect_plan("test.any \"a\" {\n"
		    "  value = coalesce(sys.env(\"ANDIRON_NONE\"), constants.hostname)\n}\n",
		    wanted);
	expect_no_value("coalesce(1, none)", "f:2:23: error: the name none means nothing here\n"
					     "    2 |   value = coalesce(1, none)\n"
					     "      |                       ^~~~\n"
					     "  text stands in double quotes: \"none\"\n");
	expect_no_value("True", "f:2:11: error: the name True means nothing here\n"
				"    2 |   value = True\n"
				"      |           ^~~~\n"
				"  write true or false\n");
	expect_plan("pyroscope.write \"w\" {}\ntest.any \"a\" {\n"
		    "  value = pyroscope.write.w.receiver == 1 || coalesce(\n"
		    "    pyroscope.write.w.receiver, true)\n}\n",
		    "f:3:11: error: || cannot stand between false and a receiver of profiles\n"
		    "    3 |   value = pyroscope.write.w.receiver == 1 || coalesce(\n"
		    "      |           ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n");
}

/* A misspelt function is told which one may be meant. */
TEST(functions_by_name)
{
	expect_no_value("sys.evn(\"x\")", "f:2:11: error: there is no function \"sys.evn\"\n"
					  "    2 |   value = sys.evn(\"x\")\n"
					  "      |           ^~~~~~~\n"
					  "  did you mean \"sys.env\"?\n");
	expect_no_value("[1](2)", "f:2:11: error: only a function can be called\n"
				  "    2 |   value = [1](2)\n"
				  "      |           ^~~~~~\n");
}

TEST(references)
{
	expect_no_value("none", "f:2:11: error: the name none means nothing here\n"
				"    2 |   value = none\n"
				"      |           ^~~~\n"
				"  text stands in double quotes: \"none\"\n");
	expect_no_value("test.any.a", "f:2:11: error: test.any.a is a component; a value is one of "
				      "its exports\n"
				      "    2 |   value = test.any.a\n"
				      "      |           ^~~~~~~~~~\n"
				      "  write test.any.a.targets\n");
	expect_no_value("test.any.b.targets",
			"f:2:11: error: there is no component \"test.any.b\"\n"
			"    2 |   value = test.any.b.targets\n"
			"      |           ^~~~~~~~~~~~~~~~~~\n"
			"  did you mean \"test.any.a\"?\n");
	expect_no_value("test.any.a.targets[0]", "f:2:11: error: test.any.a refers to itself\n"
						 "    2 |   value = test.any.a.targets[0]\n"
						 "      |           ^~~~~~~~~~~~~~~~~~\n");
	expect_no_value("test.any.a.targets.none",
			"f:2:11: error: a list of targets has no members\n"
			"    2 |   value = test.any.a.targets.none\n"
			"      |           ^~~~~~~~~~~~~~~~~~~~~~~\n");
	expect_no_value("[] + []", "f:2:11: error: + cannot stand between a list and a list\n"
				   "    2 |   value = [] + []\n"
				   "      |           ^~~~~~~\n"
				   "  array.concat joins lists\n");
}

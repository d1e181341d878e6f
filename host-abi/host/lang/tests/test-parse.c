/* SPDX-License-Identifier: Apache-2.0 */
/* The parser: what it says about broken files, and that it stays bounded. */
#include "host/lang/tests/test-lang.h"

#include "base/buf.h"

/* Every error of a file at once, one of a line, and nothing that only follows from another. */
TEST(reports_all_errors_of_a_file)
{
	expect_plan("test.any \"a\" {\n"
		    "  value =\n"
		    "}\n"
		    "test.any \"b\" { value = [1, 2) }\n"
		    "test.any \"c\" { value = 1 2 }\n"
		    "test.any \"d\" { value = 1 }\n",
		    "f:2:10: error: expected a value, but the line ends here\n"
		    "    2 |   value =\n"
		    "      |          ^\n"
		    "f:4:29: error: expected \",\" or \"]\", not )\n"
		    "    4 | test.any \"b\" { value = [1, 2) }\n"
		    "      |                             ^\n"
		    "f:5:26: error: expected a new line before the next statement, not 2\n"
		    "    5 | test.any \"c\" { value = 1 2 }\n"
		    "      |                          ^\n");
}

TEST(takes_a_line_end_for_the_missing_comma)
{
	expect_plan("test.any \"a\" {\n"
		    "  value = [\n"
		    "    1\n"
		    "    2,\n"
		    "    {\"k\" = 3\n"
		    "     \"l\" = 4\n"
		    "    },\n"
		    "  ]\n"
		    "}\n",
		    "f:3:6: error: expected \",\" or \"]\", but the line ends here\n"
		    "    3 |     1\n"
		    "      |      ^\n"
		    "  inside brackets every element that ends its line needs one\n"
		    "f:5:13: error: expected \",\" or \"}\", but the line ends here\n"
		    "    5 |     {\"k\" = 3\n"
		    "      |             ^\n"
		    "  inside brackets every element that ends its line needs one\n"
		    "f:6:13: error: expected \",\" or \"}\", but the line ends here\n"
		    "    6 |      \"l\" = 4\n"
		    "      |             ^\n"
		    "  inside brackets every element that ends its line needs one\n");
}

/* A bracket that is never closed ends where the next statement begins. */
TEST(finds_the_next_statement)
{
	expect_plan("test.any \"a\" {\n"
		    "  value = [1, 2\n"
		    "  valeu = 3\n"
		    "}\n"
		    "test.any \"b\" { value = {a = 1, b = }\n"
		    "test.any \"c\" {\n"
		    "  valeu = 1\n"
		    "}\n",
		    "f:2:16: error: expected \",\" or \"]\", but the line ends here\n"
		    "    2 |   value = [1, 2\n"
		    "      |                ^\n"
		    "  inside brackets every element that ends its line needs one\n"
		    "f:3:3: error: test.any has no argument \"valeu\"\n"
		    "    3 |   valeu = 3\n"
		    "      |   ^~~~~\n"
		    "  did you mean \"value\"?\n"
		    "f:5:36: error: expected a value, not }\n"
		    "    5 | test.any \"b\" { value = {a = 1, b = }\n"
		    "      |                                    ^\n");
	expect_plan("test.any \"a\" {\n"
		    "  value = {\n"
		    "    a = ,\n"
		    "    b = 1,\n"
		    "  }\n"
		    "}\n"
		    "test.any \"b\" {\n"
		    "  valeu = 1\n"
		    "}\n",
		    "f:3:9: error: expected a value, not ,\n"
		    "    3 |     a = ,\n"
		    "      |         ^\n"
		    "f:8:3: error: test.any has no argument \"valeu\"\n"
		    "    8 |   valeu = 1\n"
		    "      |   ^~~~~\n"
		    "  did you mean \"value\"?\n");
	expect_plan("test.any \"a\" {\n"
		    "  value = {\n"
		    "    a = 1,\n"
		    "\n"
		    "test.any \"b\" {\n"
		    "  valeu = 1\n"
		    "}\n",
		    "f:1:1: error: the block test.any is never closed\n"
		    "    1 | test.any \"a\" {\n"
		    "      | ^~~~~~~~\n"
		    "  end it with }\n"
		    "f:5:5: error: expected \"=\" behind the key, not .\n"
		    "    5 | test.any \"b\" {\n"
		    "      |     ^\n");
}

/* An argument that cannot be read is not missed, and a block with errors is not unknown to those
 * who refer to it. */
TEST(keeps_the_names_of_what_is_broken)
{
	expect_plan("discovery.relabel \"r\" {\n"
		    "  targets = !\n"
		    "}\n"
		    "discovery.relabel \"s\" {\n"
		    "  targets = discovery.relabel.r.output\n"
		    "}\n"
		    "discovery.relabel \"t\" {\n"
		    "  targets = discovery.relabel.u.output\n"
		    "}\n"
		    "discovery.relabel \"u\" {\n",
		    "f:3:1: error: expected a value, not }\n"
		    "    3 | }\n"
		    "      | ^\n"
		    "f:10:1: error: the block discovery.relabel is never closed\n"
		    "   10 | discovery.relabel \"u\" {\n"
		    "      | ^~~~~~~~~~~~~~~~~\n"
		    "  end it with }\n");
}

TEST(statements)
{
	expect_plan("test.any \"a\" { value = 1 }", "node test.any.a: {value=1}\n");
	expect_plan("test . any \"a\" {\n"
		    "\n"
		    "\n"
		    "}",
		    "node test.any.a: {}\n");
	expect_plan("test.any \"a\" {} test.any \"b\" {}",
		    "f:1:17: error: expected a new line before the next statement, not test\n"
		    "    1 | test.any \"a\" {} test.any \"b\" {}\n"
		    "      |                 ^~~~\n");
	expect_plan("test.any \"a\" { a.value = 1 }",
		    "f:1:16: error: test.any has no argument \"a.value\"\n"
		    "    1 | test.any \"a\" { a.value = 1 }\n"
		    "      |                ^~~~~~~\n"
		    "  did you mean \"value\"?\n");
	expect_plan("test.any a { }", "f:1:10: error: a label stands in double quotes\n"
				      "    1 | test.any a { }\n"
				      "      |          ^\n"
				      "  write \"NAME\"\n");
	expect_plan("test.any `a` { }", "f:1:10: error: a label stands in double quotes\n"
					"    1 | test.any `a` { }\n"
					"      |          ^~~\n"
					"  write \"NAME\"\n");
	expect_plan("test.any \"a b\" { }",
		    "f:1:10: error: \"a b\" cannot be a label\n"
		    "    1 | test.any \"a b\" { }\n"
		    "      |          ^~~~~\n"
		    "  a label begins with a letter or _ and goes on with letters, digits and _: "
		    "write \"a_b\"\n");
	expect_plan("test.any \"a\" {\n"
		    "  value = 1\n",
		    "f:1:1: error: the block test.any is never closed\n"
		    "    1 | test.any \"a\" {\n"
		    "      | ^~~~~~~~\n"
		    "  end it with }\n");
	expect_plan("}\n"
		    "test.any \"a\" {}\n"
		    "]\n",
		    "f:1:1: error: expected a block, not }\n"
		    "    1 | }\n"
		    "      | ^\n"
		    "f:3:1: error: expected the name of a block or an argument, not ]\n"
		    "    3 | ]\n"
		    "      | ^\n");
	expect_plan("test.any \"a\" {\n"
		    "  'value' = 1\n"
		    "}\n",
		    "f:2:3: error: text in single quotes\n"
		    "    2 |   'value' = 1\n"
		    "      |   ^~~~~~~\n"
		    "  write it in double quotes: \"…\"\n");
	expect_plan("test.any \"a\" {\n"
		    "  value: 1\n"
		    "}\n",
		    "f:2:8: error: \":\" means nothing here\n"
		    "    2 |   value: 1\n"
		    "      |        ^\n"
		    "  a name and its value are joined by \"=\"; of a YAML file, give what stands "
		    "below config.alloy\n");
	/* A whole file of it is one mistake. */
	expect_plan("data:\n"
		    "  config.alloy: |\n"
		    "    test.any \"a\" { value = }\n"
		    "kind: ConfigMap\n",
		    "f:1:5: error: \":\" means nothing here\n"
		    "    1 | data:\n"
		    "      |     ^\n"
		    "  a name and its value are joined by \"=\"; of a YAML file, give what stands "
		    "below config.alloy\n");
}

TEST(keeps_what_stands_around_a_colon)
{
	expect_plan("test.any \"a\" { }\n"
		    "test.any: \"b\" { }\n"
		    "test.any \"c\" { x = 1 }\n",
		    "f:2:9: error: \":\" means nothing here\n"
		    "    2 | test.any: \"b\" { }\n"
		    "      |         ^\n"
		    "  a name and its value are joined by \"=\"; of a YAML file, give what stands "
		    "below config.alloy\n"
		    "f:3:16: error: test.any has no argument \"x\"\n"
		    "    3 | test.any \"c\" { x = 1 }\n"
		    "      |                ^\n");
}

/* What recurses is bounded, however the levels are made. */
TEST(bounds_depth)
{
	static const struct {
		const char *before, *piece, *after;
	} cases[] = {
		{"test.any \"a\" { value = ", "[", "\n}"},
		{"test.any \"a\" { value = ", "(", "\n}"},
		{"test.any \"a\" { value = ", "{a=", "\n}"},
		{"test.any \"a\" { value = ", "-", "1\n}"},
		{"test.any \"a\" { value = 1", "^1", "\n}"},
		{"test.any \"a\" { value = 1", "+1", "\n}"},
		{"test.any \"a\" { value = x", "[0]", "\n}"},
		{"test.any \"a\" { value = x", ".x", "\n}"},
		{"test.any \"a\" { value = x", "()", "\n}"},
		{"test.any \"a\" { value = x", "(x", "\n}"},
		{"", "test.any \"a\" {\n", ""},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct buf b = BUF_NULL;
		char *got;

		buf_str_append(&b, str_of(cases[i].before));
		for (int n = 0; n < 100000; n++)
			buf_str_append(&b, str_of(cases[i].piece));
		buf_str_append(&b, str_of(cases[i].after));
		got = plan_text(buf_str(&b));
		if (!strstr(got, "levels deep"))
			test_fail(__FILE__, __LINE__, "case %zu gave %.2000s", i, got);
		free(got);
		buf_free(&b);
	}
}

TEST(bounds_size)
{
	struct buf b = BUF_NULL;
	char *got;

	buf_str_append(&b, STR("test.any \"a\" { value = ["));
	for (int n = 0; n < 300000; n++)
		buf_str_append(&b, STR("1,"));
	buf_str_append(&b, STR("] }"));
	got = plan_text(buf_str(&b));
	expect(strstr(got, "error: this file has more than 200000 values"));
	free(got);
	buf_free(&b);
}

/* Alloy's documentation writes keys so. */
TEST(takes_keys_between_backticks)
{
	expect_value("{`a b` = 1, \"a\\\\b\" = 2}", "{a b=1 a\\\\b=2}");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Findings, word by word and column by column. */
#include "host/lang/tests/test-lang.h"

#include "base/buf.h"

static void expect_printed(struct diags *d, const char *text)
{
	char *got = diags_text(d, false);

	if (strcmp(got, text) != 0)
		test_fail(__FILE__, __LINE__, "got:\n%s\nexpected:\n%s", got, text);
	free(got);
	diags_free(d);
}

static struct place place_in(const struct source *source, uint32_t line, uint32_t column,
			     uint32_t length)
{
	return (struct place){source, line, column, length};
}

/* The form that diag.h shows. */
TEST(prints_place_line_underline_and_hint)
{
	struct source s = {"agent.alloy", STR("a {\n  sample_rat = 97\n}\n")};
	struct diags d = {0};

	diag_add(&d, DIAG_ERROR, place_in(&s, 2, 3, 10), "did you mean \"sample_rate\"?",
		 "pyroscope.ebpf has no argument \"%s\"", "sample_rat");
	expect_printed(&d, "agent.alloy:2:3: error: pyroscope.ebpf has no argument \"sample_rat\"\n"
			   "    2 |   sample_rat = 97\n"
			   "      |   ^~~~~~~~~~\n"
			   "  did you mean \"sample_rate\"?\n");
}

/* The same for programs: places as numbers, secrets hidden, whatever the bytes. */
TEST(writes_findings_as_json)
{
	struct source s = {"a\"b", STR("x {\n  password = \"hush-hush\"\n}\n")};
	struct diags d = {0};
	struct buf out = BUF_NULL;

	diag_add(&d, DIAG_WARNING, place_in(&s, 2, 14, 11), "one\ntwo",
		 "bad \"hush-hush\" \x1b[31m");
	diag_add(&d, DIAG_ERROR, (struct place){0}, NULL, "no place");
	expect_eq(diags_put_json(&d, &out), 0);
	expect_str(buf_str(&out),
		   "[{\"file\":\"\",\"line\":0,\"column\":0,\"length\":0,\"severity\":\"error\","
		   "\"message\":\"no place\",\"hint\":\"\"},\n"
		   "{\"file\":\"a\\\"b\",\"line\":2,\"column\":14,\"length\":11,"
		   "\"severity\":\"warning\",\"message\":\"bad \\\"********\\\" \\\\x1b[31m\","
		   "\"hint\":\"one\\ntwo\"}]");
	buf_free(&out);
	diags_free(&d);
}

/* Whatever the order of finding, the reader goes through the file once. */
TEST(orders_by_place)
{
	struct source s = {"f", STR("one\ntwo\n")};
	struct diags d = {0};

	diag_add(&d, DIAG_WARNING, place_in(&s, 2, 2, 1), NULL, "third");
	diag_add(&d, DIAG_ERROR, place_in(&s, 2, 1, 1), NULL, "second");
	diag_add(&d, DIAG_ERROR, place_in(&s, 0, 0, 0), NULL, "first");
	diag_add(&d, DIAG_WARNING, place_in(&s, 2, 2, 1), NULL, "fourth");
	diag_add(&d, DIAG_ERROR, place_in(NULL, 0, 0, 0), "a\nb", "zeroth");
	expect_eq(d.n_errors, 3);
	expect_eq(d.n_warnings, 2);
	expect_printed(&d, "error: zeroth\n  a\n  b\n"
			   "f: error: first\n"
			   "f:2:1: error: second\n    2 | two\n      | ^\n"
			   "f:2:2: warning: third\n    2 | two\n      |  ^\n"
			   "f:2:2: warning: fourth\n    2 | two\n      |  ^\n");
}

/* The underline stands under its word behind tabs and letters of several bytes, and is as wide as
 * what is shown of it. */
TEST(underline_counts_columns)
{
	struct source s = {"f", STR("\tk = \"äöü\" x\r\n")};
	struct diags d = {0};

	diag_add(&d, DIAG_ERROR, place_in(&s, 1, 6, 8), NULL, "text");
	diag_add(&d, DIAG_ERROR, place_in(&s, 1, 15, 100), NULL, "word");
	expect_printed(&d, "f:1:6: error: text\n"
			   "    1 |     k = \"äöü\" x\n"
			   "      |         ^~~~~\n"
			   "f:1:15: error: word\n"
			   "    1 |     k = \"äöü\" x\n"
			   "      |               ^\n");
}

/* A file cannot steer the terminal of who reads its errors. */
TEST(escapes_control_characters)
{
	struct source s = {"f\033", STR("a\033[31m\xc2\x9b\xff\xe2\x80\xae z")};
	struct diags d = {0};

	diag_add(&d, DIAG_ERROR, place_in(&s, 1, 14, 1), "h\a", "t\n\033");
	expect_printed(&d, "f\\x1b:1:14: error: t\\x0a\\x1b\n"
			   "    1 | a\\x1b[31m\\xc2\\x9b\\xff\\xe2\\x80\\xae z\n"
			   "      |                                   ^\n"
			   "  h\\x07\n");
}

/* Of a huge line a window is shown, cut between characters. */
TEST(shows_a_window_of_a_long_line)
{
	size_t n = 20u << 20;
	char *line = malloc(n), *got;
	struct source s = {"f", {line, n}};
	struct diags d = {0};

	expect(line);
	memset(line, 'x', n);
	memcpy(line + 5000000, "WORD", 4);
	diag_add(&d, DIAG_ERROR, place_in(&s, 1, 5000001, 4), NULL, "middle");
	diag_add(&d, DIAG_ERROR, place_in(&s, 1, (uint32_t)n + 1, 1), NULL, "end");
	got = diags_text(&d, false);
	expect(strlen(got) < 1000);
	expect(strstr(got, "    1 | …xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxWORDxxx"));
	expect(strstr(got, "      |                                          ^~~~\n"));
	free(got);
	diags_free(&d);
	free(line);
}

/* The list is bounded, the counts are not, and an error comes before a warning. */
TEST(keeps_a_hundred)
{
	struct source s = {"f", STR("x")};
	struct diags d = {0};
	char *got;

	for (int i = 0; i < 150; i++)
		diag_add(&d, DIAG_WARNING, place_in(&s, 1, 1, 1), NULL, "w%d", i);
	diag_add(&d, DIAG_ERROR, place_in(&s, 1, 1, 1), NULL, "the error");
	expect_eq(d.list.n, 100);
	expect_eq(d.n_warnings, 150);
	got = diags_text(&d, false);
	expect(strstr(got, "error: the error"));
	expect(strstr(got, "\nand 51 more\n"));
	free(got);
	diags_free(&d);
}

TEST(cuts_off_endless_texts)
{
	struct diags d = {0};
	char name[5000];

	memset(name, 'n', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	diag_add(&d, DIAG_ERROR, place_in(NULL, 0, 0, 0), name, "%s", name);
	expect(strlen(d.list.p[0].text) < 1001);
	expect_eq(strlen(d.list.p[0].hint), 4000);
	diags_free(&d);
}

TEST(suggests_only_what_is_near)
{
	static const char *const words[] = {"sample_rate", "targets", "demangle"};
	static const char *const dotted[] = {"discovery.dns", "sys.env"};
	struct diags d = {0};

	expect_str(str_of(diag_suggest(&d, STR("sampel_rate"), words, 3)),
		   "did you mean \"sample_rate\"?");
	expect(!diag_suggest(&d, STR("interval"), words, 3));
	/* Of two long names it is the last part that counts. */
	expect(!diag_suggest(&d, STR("discovery.ec2"), dotted, 2));
	expect_str(str_of(diag_suggest(&d, STR("discovery.dn"), dotted, 1)),
		   "did you mean \"discovery.dns\"?");
	expect(!diag_suggest(&d, STR("x"), words, 0));
	diags_free(&d);
}

/* Names differ between versions and products by a word in front or behind. Where two could be
 * meant, neither is offered. */
TEST(suggests_the_one_name_that_shares_its_words)
{
	static const char *const words[] = {"sample_rate", "collect_interval", "v8_enabled",
					    "go_enabled"};
	static const char *const dotted[] = {"profile.process_cpu", "profile.memory"};
	struct diags d = {0};

	expect_str(str_of(diag_suggest(&d, STR("default_sample_rate"), words, 4)),
		   "did you mean \"sample_rate\"?");
	expect_str(str_of(diag_suggest(&d, STR("interval"), words, 4)),
		   "did you mean \"collect_interval\"?");
	expect(!diag_suggest(&d, STR("enabled"), words, 4));
	expect(!diag_suggest(&d, STR("terval"), words, 4));
	expect_str(str_of(diag_suggest(&d, STR("profile.cpu"), dotted, 2)),
		   "did you mean \"profile.process_cpu\"?");
	expect(!diag_suggest(&d, STR("runtime.cpu"), dotted, 2));
	diags_free(&d);
}

TEST(colours)
{
	struct source s = {"f", STR("x")};
	struct diags d = {0};
	char *got;

	diag_add(&d, DIAG_ERROR, place_in(&s, 1, 1, 1), NULL, "e");
	got = diags_text(&d, true);
	expect_str(str_of(got), "\033[1mf:1:1: \033[1;31merror: \033[0me\n    1 | x\n"
				"      | \033[32m^\033[0m\n");
	free(got);
	diags_free(&d);
}

static void expect_hidden(const char *source, const char *text)
{
	struct source s = {"f", str_of(source)};
	struct diags d = {0};

	diag_add(&d, DIAG_ERROR, place_in(&s, 1, 1, 1), NULL, "x");
	expect_printed(&d, text);
}

/* A value that belongs to a secret is never quoted, whether the file parses or not. The marks stay
 * under their words. */
TEST(secrets_are_not_quoted)
{
	expect_hidden("password = \"hunter2\"\n", "f:1:1: error: x\n"
						  "    1 | password = \"********\"\n      | ^\n");
	expect_hidden("bearer_token = \"hunter2\n", "f:1:1: error: x\n"
						    "    1 | bearer_token********\n      | ^\n");
	expect_hidden("password = hunter2", "f:1:1: error: x\n"
					    "    1 | password = ********\n      | ^\n");
	expect_hidden("password: 'hunter2'", "f:1:1: error: x\n"
					     "    1 | password********\n      | ^\n");
	expect_hidden("h = {\"Authorization\" = \"Bearer x\", \"A\" = \"b\"}",
		      "f:1:1: error: x\n"
		      "    1 | h = {\"Authorization\" = \"********\", \"A\" = \"b\"}\n      | ^\n");
	expect_hidden("x = \"a password = \"hunter2\"",
		      "f:1:1: error: x\n    1 | x = \"a password********\n      | ^\n");
	expect_hidden("password = sys.env(\"NAME\")",
		      "f:1:1: error: x\n    1 | password = sys.env(\"NAME\")\n      | ^\n");
	expect_hidden("password_file = \"/etc/p\"",
		      "f:1:1: error: x\n    1 | password_file = \"/etc/p\"\n      | ^\n");
}

/* Of a value that is a name declared secret, in lines and in the finding's own text; behind it the
 * marks move with the text. */
TEST(secrets_are_not_quoted_in_texts)
{
	struct source s = {"f", STR("a = 1, pin = `hun\nter2`, b = 2\n")};
	struct diags d = {0};
	const char *pin = "pin";

	expect(vec_push(&d.secrets, pin));
	diag_add(&d, DIAG_ERROR, place_in(&s, 1, 15, 3), "not hunter", "bad \"%s\"", "hun\nter2");
	diag_add(&d, DIAG_ERROR, place_in(&s, 2, 8, 1), NULL, "b");
	expect_printed(&d, "f:1:15: error: bad \"********\"\n"
			   "    1 | a = 1, pin = `********\n"
			   "      |               ^~~~~~~~\n"
			   "  not hunter\n"
			   "f:2:8: error: b\n"
			   "    2 | ********`, b = 2\n"
			   "      |            ^\n");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* encoding.from_yaml: the values are those of the library that Alloy uses. */
#include "host/lang/tests/test-lang.h"

#include "base/buf.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The first line, which the caller frees: the plan, or the error. */
static char *decode(struct str yaml)
{
	struct buf text = BUF_NULL;
	char *got;

	buf_str_append(&text, STR("test.any \"a\" { value = [encoding.from_yaml(`"));
	buf_str_append(&text, yaml);
	buf_str_append(&text, STR("`)] }"));
	expect(!text.failed);
	got = plan_text(buf_str(&text));
	got[strcspn(got, "\n")] = '\0';
	buf_free(&text);
	return got;
}

static const struct {
	const char *yaml, *value;
} cases[] = {
	{"", "null"},
	{"# c\n", "null"},
	{"~", "null"},
	{"null", "null"},
	{"NULL", "null"},
	{"nUll", "\"nUll\""},
	{"True", "true"},
	{"FALSE", "false"},
	{"tRue", "\"tRue\""},
	{"yes", "\"yes\""},
	{"off", "\"off\""},
	{"y", "\"y\""},
	/* Whole numbers. */
	{"15", "15"},
	{"+12", "12"},
	{"-5", "-5"},
	{"0x1F", "31"},
	{"-0X10", "-16"},
	{"0o17", "15"},
	{"017", "15"},
	{"0b101", "5"},
	{"1_000", "1000"},
	{"1_", "1"},
	{"-_1", "-1"},
	{"_1", "\"_1\""},
	{"-0", "0"},
	{"00", "0"},
	{"0x", "\"0x\""},
	{"0o8", "\"0o8\""},
	{"9223372036854775807", "9223372036854775807"},
	{"-0x8000000000000000", "-9223372036854775808"},
	{"18446744073709551615", "1.84467e+19f"},
	{"0xFFFFFFFFFFFFFFFF", "1.84467e+19f"},
	/* Fractions. */
	{"1.5", "1.5f"},
	{"1.", "1f"},
	{".5", "0.5f"},
	{"+.5", "0.5f"},
	{"-1.5e1", "-15f"},
	{"1_0.5", "10.5f"},
	{"08", "8f"},
	{".e1", "\".e1\""},
	{"1e", "\"1e\""},
	{"1e400", "\"1e400\""},
	{"1:30", "\"1:30\""},
	{"NaN", "\"NaN\""},
	{"--", "\"--\""},
	/* Times are texts. */
	{"2001-01-01", "\"2001-01-01T00:00:00Z\""},
	{"2002-1-1", "\"2002-01-01T00:00:00Z\""},
	{"2001-12-14t21:59:43.10-05:00", "\"2001-12-14T21:59:43.1-05:00\""},
	{"2002-01-01 10:00:00", "\"2002-01-01T10:00:00Z\""},
	{"2001-02-29", "\"2001-02-29\""},
	{"'2001-01-01'", "\"2001-01-01\""},
	/* Tags. */
	{"'15'", "\"15\""},
	{"!!str 15", "\"15\""},
	{"!!str ~", "\"~\""},
	{"!!int '15'", "15"},
	{"!!float 1", "1f"},
	{"!!null ''", "null"},
	{"! 15", "15"},
	{"!x 15", "\"15\""},
	{"!!timestamp 2001-01-01", "\"2001-01-01T00:00:00Z\""},
	{"!!set {a, b}", "{a=null b=null}"},
	/* Texts in blocks, lists, objects. */
	{"|\n a\n b\n", "\"a\nb"},
	{">\n a\n b", "\"a b\""},
	{"\"\\u00e4\\x41\"", "\"äA\""},
	{"[1, [a, null], {}]", "[1 [\"a\" null] {}]"},
	{"- 1\n- - 2\n  - 3\n- ", "[1 [2 3] null]"},
	{"a:\nb: ''\ny: 1", "{a=null b=\"\" y=1}"},
	{"? a\n: b", "{a=\"b\"}"},
	{"--- 1\n--- 2\n", "1"},
	{"%YAML 1.1\n---\nyes\n", "\"yes\""},
	/* Aliases, and << in the order of the text. */
	{"a: &x 1\nb: *x", "{a=1 b=1}"},
	{"[&x 1, *x, &x 2, *x]", "[1 1 2 2]"},
	{"a: &x {k: 1, l: 1}\nb:\n  l: 2\n  <<: *x", "{a={k=1 l=1} b={l=2 k=1}}"},
	{"a: &x {k: 1, l: 1}\nb:\n  <<: *x\n  l: 2", "{a={k=1 l=1} b={l=2 k=1}}"},
	{"b:\n  <<: [{a: 1}, {a: 2, c: 3}]", "{b={a=1 c=3}}"},
	{"'<<': {a: 1}", "{<<={a=1}}"},
	{"[<<]", "[\"<<\"]"},
};

TEST(values)
{
	for (size_t i = 0; i < COUNT(cases); i++) {
		char *got = decode(str_of(cases[i].yaml)), wanted[200];
		char *end;

		snprintf(wanted, sizeof(wanted), "node test.any.a: {value=[%s]}", cases[i].value);
		end = strchr(wanted, '\n');
		if (end)
			*end = '\0';
		if (strcmp(got, wanted) != 0)
			test_fail(__FILE__, __LINE__, "%s\ngot:      %s\nexpected: %s",
				  cases[i].yaml, got, wanted);
		free(got);
	}
}

static const struct {
	const char *yaml, *said;
} refused[] = {
	{"a: b: c", "mapping values are not allowed in this context (line 1)"},
	{"a: 1\n@", "found character that cannot start any token (line 2)"},
	{"a: 1\nb: 2\na: 3", "a key is given twice in one object (line 3)"},
	{"1: a", "a key is a text; a number, true or null needs quotes (line 1)"},
	{"a: 1\n[1]: a", "a key is a text, not a list or an object (line 2)"},
	{"a: *x", "an alias names what does not stand before it (line 1)"},
	{"a:\n - &x [*x]", "an alias stands within what it names (line 2)"},
	{"<<: 1", "<< merges objects only (line 1)"},
	{"!!int 1.5", "a value is not of the type that its !! says (line 1)"},
	{"!!bool yes", "a value is not of the type that its !! says (line 1)"},
	{"!!binary aGk=",
	 "!!binary is not supported; encoding.from_base64 decodes a text (line 1)"},
	{"[1", "did not find expected ',' or ']' (line 2)"},
};

TEST(what_is_wrong_is_told_with_its_line)
{
	for (size_t i = 0; i < COUNT(refused); i++) {
		char *got = decode(str_of(refused[i].yaml)), wanted[300];

		snprintf(wanted, sizeof(wanted), "this YAML cannot be read: %s", refused[i].said);
		if (!strstr(got, wanted))
			test_fail(__FILE__, __LINE__, "%s\ngot:      %s\nexpected: %s",
				  refused[i].yaml, got, wanted);
		free(got);
	}
}

TEST(messages)
{
	expect_no_value("encoding.from_yaml(`[`)",
		    "f:2:30: error: this YAML cannot be read: did not find expected node content "
		    "(line 2)\n"
		    "    2 |   value = encoding.from_yaml(`[`)\n"
		    "      |                              ^~~\n");
	expect_no_value("encoding.from_yaml([1])",
		    "f:2:30: error: encoding.from_yaml takes a string here, not a list\n"
		    "    2 |   value = encoding.from_yaml([1])\n"
		    "      |                              ^~~\n");
	expect_no_value("yaml_decode(\"a: 1\").a",
		    "f:2:11: warning: yaml_decode is deprecated; write encoding.from_yaml\n"
		    "    2 |   value = yaml_decode(\"a: 1\").a\n"
		    "      |           ^~~~~~~~~~~\n"
		    "node test.any.a: {value=1}\n");
}

/* Texts that grow when they are read end at a bound: aliases of aliases, nesting, length. */
TEST(bounds)
{
	struct buf laughs = BUF_NULL, deep = BUF_NULL, chain = BUF_NULL, big = BUF_NULL;
	struct buf merges = BUF_NULL, tags = BUF_NULL, hidden = BUF_NULL;
	const struct {
		const struct buf *yaml;
		const char *said;
	} bounded[] = {
		{&laughs, "it holds more than 100000 items, with its aliases written out (line "},
		{&deep, "it is nested more than 100 levels deep (line 1)"},
		{&chain, "it is nested more than 100 levels deep (line "},
		{&big, "this YAML is 1048577 bytes long; at most 1048576 are read"},
		{&tags, "more than 100 lines of this YAML begin with %"},
		{&hidden, "more than 100 lines of this YAML begin with %"},
		{&merges, "it holds more than 100000 items, with its aliases written out (line "},
	};

	buf_str_append(&laughs, STR("a0: &a0 [x, x, x, x, x, x, x, x, x]\n"));
	buf_str_append(&merges, STR("a0: &a0 {"));
	for (int i = 0; i < 2000; i++)
		buf_printf(&merges, "k%d: 1, ", i);
	buf_str_append(&merges, STR("}\n"));
	buf_str_append(&chain, STR("a0: &a0 []\n"));
	for (int i = 1; i < 110; i++) {
		if (i < 20)
			buf_printf(&laughs, "a%d: &a%d [*a%d, *a%d, *a%d]\n", i, i, i - 1, i - 1,
				   i - 1);
		buf_printf(&chain, "a%d: &a%d [*a%d]\n", i, i, i - 1);
		buf_printf(&merges, "a%d: {<<: *a0}\n", i);
		buf_putc(&deep, '[');
		buf_printf(&tags, "%%TAG !t%d! x\n", i);
		buf_printf(&hidden, "%%TAG !t%d! x\xc2\x85", i);
	}
	for (int i = 0; i <= 1 << 20; i++)
		buf_putc(&big, 'x');
	for (size_t i = 0; i < COUNT(bounded); i++) {
		char *got = decode(buf_str(bounded[i].yaml));

		if (!strstr(got, bounded[i].said))
			test_fail(__FILE__, __LINE__, "got: %.300s\nexpected: %s", got,
				  bounded[i].said);
		free(got);
	}
	buf_free(&laughs);
	buf_free(&deep);
	buf_free(&chain);
	buf_free(&big);
	buf_free(&merges);
	buf_free(&tags);
	buf_free(&hidden);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* json_path: what paths find, and what is said of those that are none. The answers are those of the
 * library that Alloy uses, except for the order of an object's members, which it leaves open. */
#include "host/lang/tests/test-lang.h"

#include "base/buf.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* One line, which the caller frees: the plan, or the first error. */
static char *find(const char *json, const char *path)
{
	char *text = NULL, *got;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	fprintf(f, "test.any \"a\" { value = json_path(`%s`, `%s`) }", json, path);
	fclose(f);
	got = plan_text(str_of(text));
	free(text);
	got[strcspn(got, "\n")] = '\0';
	return got;
}

static const char numbers[] = "[0, 1, 2, 3, 4, 5]";
static const char shop[] = "{\"b\": [{\"p\": 1, \"n\": \"x\"}, {\"p\": 5, \"n\": \"y\"}, "
			   "{\"n\": \"z\"}], \"max\": 5}";

static const struct {
	const char *json, *path, *found;
} cases[] = {
	/* Names; $, @ and the first dot may be left out. */
	{"{\"a\": {\"b\": 1}}", "$.a.b", "[1]"},
	{"{\"a\": {\"b\": 1}}", "@.a.b", "[1]"},
	{"{\"a\": {\"b\": 1}}", ".a.b", "[1]"},
	{"{\"a\": {\"b\": 1}}", "a.b", "[1]"},
	{"{\"a\": {\"b\": 1}}", "$['a'][\"b\"]", "[1]"},
	{"{\"a\": {\"b\": 1}}", "$", "[{a={b=1}}]"},
	{"{\"a\": {\"b\": 1}}", "", "[]"},
	{"{\"a\": {\"b\": 1}}", ".none", "[]"},
	{"{\"a\": {\"b\": 1}}", "a.b.c", "[]"},
	{"{\"a b\": 1, \"it's\": 2, \"ä\": 3, \"0\": 4, \"\": 5}", "['a b']", "[1]"},
	{"{\"a b\": 1, \"it's\": 2, \"ä\": 3, \"0\": 4, \"\": 5}", "['it\\'s']", "[2]"},
	{"{\"a b\": 1, \"it's\": 2, \"ä\": 3, \"0\": 4, \"\": 5}", "ä", "[3]"},
	{"{\"a b\": 1, \"it's\": 2, \"ä\": 3, \"0\": 4, \"\": 5}", ".0", "[4]"},
	{"{\"a b\": 1, \"it's\": 2, \"ä\": 3, \"0\": 4, \"\": 5}", "['']", "[5]"},
	{"{\"a\": 1, \"a\": 2}", "a", "[2]"},
	{"{\"a\": null}", "a", "[null]"},
	{"", "a", "[]"},
	{" \n", "$", "[]"},
	/* Indices. */
	{numbers, "[0]", "[0]"},
	{numbers, "[-1]", "[5]"},
	{numbers, "[6]", "[]"},
	{numbers, "[-7]", "[]"},
	{numbers, "[ 00 ]", "[0]"},
	{numbers, "[99999999999999999999999]", "[]"},
	{"{\"0\": 1}", "[0]", "[]"},
	/* Ranges. */
	{numbers, "[1:3]", "[1 2]"},
	{numbers, "[:3]", "[0 1 2]"},
	{numbers, "[4:]", "[4 5]"},
	{numbers, "[-2:]", "[4 5]"},
	{numbers, "[:-4]", "[0 1]"},
	{numbers, "[-3:-1]", "[3 4]"},
	{numbers, "[ 1 : 2 ]", "[1]"},
	{numbers, "[:]", "[0 1 2 3 4 5]"},
	{numbers, "[::2]", "[0 2 4]"},
	{numbers, "[1:-1:2]", "[1 3]"},
	{numbers, "[5:0:-1]", "[5 4 3 2 1]"},
	{numbers, "[2:-10:-1]", "[2 1 0]"},
	{numbers, "[-1:-3:-1]", "[5 4]"},
	{numbers, "[::-1]", "[]"},
	{numbers, "[100:2:-1]", "[]"},
	{numbers, "[-100:2]", "[0 1]"},
	{numbers, "[2:99999999999999999999:99999999999999999999]", "[2]"},
	{numbers, "[::0]", "[]"},
	{numbers, "[4:1]", "[]"},
	/* Several, and all. */
	{numbers, "[2,0,2]", "[2 0 2]"},
	{numbers, "[ 0 , -1 ]", "[0 5]"},
	{"{\"a\": 1, \"b\": 2}", "['b', 0, 'none', 'a']", "[2 1]"},
	{"[[1, 2], [3]]", "*[0]", "[1 3]"},
	{"[[1, 2], [3]]", "$.*[*]", "[1 2 3]"},
	{"[[1, 2], [3]]", "[1,0][0]", "[3 1]"},
	{"{\"a\": {\"x\": 1}, \"b\": {\"x\": 2}}", "*.x", "[1 2]"},
	/* Everything within; what is deeper comes first. */
	{"{\"a\": {\"x\": 1}, \"b\": [{\"x\": 2}, {\"y\": {\"x\": 3}}]}", "$..x", "[1 2 3]"},
	{"{\"a\": {\"x\": {\"x\": 1}}}", "..x", "[1 {x=1}]"},
	{"[[1, [2]], 3]", "$..[0]", "[2 1 [1 [2]]]"},
	{"[[1, [2]], 3]", "$..*", "[2 1 [2] [1 [2]] 3]"},
	{"[[1, [2]], [3]]", "$..[0,1]", "[2 1 [2] 3 [1 [2]] [3]]"},
	{"[[1, [2]], [3]]", "$..[?(@ > 1)]", "[2 3]"},
	{"{\"a\": {\"b\": {\"c\": 1}}}", "a..c", "[1]"},
	/* Conditions. */
	{shop, "b[?(@.p)].n", "[\"x\" \"y\"]"},
	{shop, "b[?(@.p > 1)].n", "[\"y\"]"},
	{shop, "b[?(@.p >= 1.0)].n", "[\"x\" \"y\"]"},
	{shop, "b[?(@.n < 'y')].n", "[\"x\"]"},
	{shop, "b[?(@.n <= \"y\")].n", "[\"x\" \"y\"]"},
	{shop, "b[?(@.p != 1)].n", "[\"y\" \"z\"]"},
	{shop, "b[?(@.p == 1 || @.n == 'z')].n", "[\"x\" \"z\"]"},
	{shop, "b[?(@.p == 1 && @.n == 'x')].n", "[\"x\"]"},
	{shop, "b[?@.p==1].n", "[\"x\"]"},
	{shop, "b[? @.p == 1 ].n", "[\"x\"]"},
	{shop, "b[?(!@.p)].n", "[\"z\"]"},
	{shop, "b[?(!(@.p == 1))].n", "[\"y\" \"z\"]"},
	{shop, "b[?(@.p == 9 && @.n == 'x' || @.n == 'z')].n", "[\"z\"]"},
	{shop, "b[?((@.n == 'z' || @.p == 1) && @.n == 'z')].n", "[\"z\"]"},
	{shop, "b[?(5 == @.p)].n", "[\"y\"]"},
	{shop, "b[?(@.p == $.max)].n", "[\"y\"]"},
	{shop, "b[?(@.p == '1')].n", "[]"},
	{shop, "b[?(@.p == null)].n", "[]"},
	{shop, "b[?(@.none == @.nil)].n", "[\"x\" \"y\" \"z\"]"},
	{shop, "b[?(@.none <= @.nil)].n", "[]"},
	{"[{\"a\": null}, {}]", "[?(@.a == null)]", "[{a=null}]"},
	{"[{\"a\": false}, {}]", "[?(@.a)]", "[{a=false}]"},
	{"[{\"a\": true}, {\"a\": false}]", "[?(@.a == false)]", "[{a=false}]"},
	{"[{\"a\": -1.5}, {\"a\": 1}]", "[?(@.a == -1.5)]", "[{a=-1.5f}]"},
	{"[{\"a\": [1]}, {\"a\": [2]}]", "[?(@['a'][-1] == 2)].a[0]", "[2]"},
	{"[{\"a\": [1]}]", "[?(@.a == @.a)]", "[]"},
	{"{\"a\": {\"p\": 1}, \"b\": {\"p\": 2}}", "[?(@.p == 2)].p", "[2]"},
	{"[3, 1]", "[?(@ == $[1])]", "[1]"},
	{"[{\"k\": \"a\\\"b\"}]", "[?(@.k == \"a\\\"b\")].k", "[\"a\"b\"]"},
	{"[{\"name\": \"Department\", \"value\": \"IT\"}, {\"name\": \"S\", \"value\": \"P\"}]",
	 "[?(@.name == \"Department\")].value", "[\"IT\"]"},
};

TEST(paths_find)
{
	for (size_t i = 0; i < COUNT(cases); i++) {
		char *got = find(cases[i].json, cases[i].path), wanted[200];

		snprintf(wanted, sizeof(wanted), "node test.any.a: {value=%s}", cases[i].found);
		if (strcmp(got, wanted) != 0)
			test_fail(__FILE__, __LINE__, "%s of %s\ngot:      %s\nexpected: %s",
				  cases[i].path, cases[i].json, got, wanted);
		free(got);
	}
}

static const struct {
	const char *path, *said;
} refused[] = {
	{"$a", "this is no path: here stands . or [, or a name begins that needs brackets: "
	       "['a-b'] (byte 1)"},
	{"a-b", "this is no path: here stands . or [, or a name begins that needs brackets: "
		"['a-b'] (byte 1)"},
	{"a.", "this is no path: here stands a name, or * or [; other names stand in brackets: "
	       "['a-b'] (byte 2)"},
	{"$..", "this is no path: behind .. stands what is sought: ..name or ..* (byte 3)"},
	{"a....b", "this is no path: behind .. stands what is sought: ..name or ..* (byte 5)"},
	{"[", "this is no path: in brackets stands 'name', an index, a range such as 1:3, * or "
	      "?(…) (byte 1)"},
	{"[0", "this is no path: the bracket is not closed (byte 2)"},
	{"[0,]", "this is no path: in brackets stands 'name', an index, a range such as 1:3, * or "
		 "?(…) (byte 3)"},
	{"[a]", "this is no path: a name in brackets has quotes: ['name'] (byte 1)"},
	{"['a]", "this is no path: the quotes are not closed (byte 4)"},
	{"[-]", "this is no path: here stands a number (byte 2)"},
	{"[1:x]", "this is no path: here stands a number (byte 3)"},
	{"[?]", "this is no path: here stands a value: @.name, a number, \"text\", true, false or "
		"null (byte 2)"},
	{"[?(@.a == 1]", "this is no path: a parenthesis is not closed (byte 11)"},
	{"[?(@.a = 1)]", "this is no path: two values are compared by == (byte 7)"},
	{"[?(!@.a == 1)]",
	 "this is no path: what ! denies stands in parentheses: !(@.a == 1) (byte 12)"},
	{"[?(@.a || @.b && @.c)]",
	 "this is no path: && behind || needs parentheses, since Alloy takes (a || b) && c where "
	 "most people mean a || (b && c) (byte 16)"},
	{"['\\u0061']",
	 "json_path does not support an escape other than \\\\, \\' and \\\" here (byte 3)"},
	{"[(@.length-1)]",
	 "json_path does not support scripts in brackets; the last item is [-1] here (byte 1)"},
	{"[?(@.a =~ /x/)]", "json_path does not support regular expressions here (byte 7)"},
	{"[?(@.a + 1 == 2)]", "json_path does not support arithmetic here (byte 7)"},
	{"[?(@.a in ['x'])]", "json_path does not support operators that are words here (byte 7)"},
	{"[?(@.a == ['x'])]", "json_path does not support lists within a condition here (byte 10)"},
	{"[?(length(@.a) == 1)]",
	 "json_path does not support functions and words in a condition here (byte 3)"},
	{"[?(@..a == 1)]",
	 "json_path does not support *, .. and lists of items within a condition here (byte 6)"},
};

TEST(what_is_no_path_is_told)
{
	for (size_t i = 0; i < COUNT(refused); i++) {
		char *got = find("[]", refused[i].path), wanted[300];

		snprintf(wanted, sizeof(wanted), "f:1:40: error: %s", refused[i].said);
		if (strcmp(got, wanted) != 0)
			test_fail(__FILE__, __LINE__, "%s\ngot:      %s\nexpected: %s",
				  refused[i].path, got, wanted);
		free(got);
	}
}

/* A whole message, with what to do. */
TEST(a_message_shows_the_place)
{
	expect_no_value("json_path(`[]`, `[?(@.a =~ /x/)]`)",
		    "f:2:27: error: json_path does not support regular expressions here (byte 7)\n"
		    "    2 |   value = json_path(`[]`, `[?(@.a =~ /x/)]`)\n"
		    "      |                           ^~~~~~~~~~~~~~~~~\n"
		    "  a path is made of .name, ['name'], [0], [1:3], [0,1], *, .. and "
		    "[?(@.name == \"x\")]\n");
	expect_no_value("json_path(`{`, `a`)",
		    "f:2:21: error: this is not JSON: an object's member begins with its name in "
		    "quotes (byte 1)\n"
		    "    2 |   value = json_path(`{`, `a`)\n"
		    "      |                     ^~~\n");
	expect_no_value("json_path(true, `a`)",
		    "f:2:21: error: json_path takes a string here, not true\n"
		    "    2 |   value = json_path(true, `a`)\n"
		    "      |                     ^~~~\n");
	expect_no_value("json_path(`{}`)", "f:2:11: error: json_path takes 2 values, not 1\n"
					   "    2 |   value = json_path(`{}`)\n"
					   "      |           ^~~~~~~~~~~~~~~\n"
					   "  write json_path(JSON, PATH)\n");
	expect_value("json_path(`{\"a\": \"b\"}`, `.a`)[0]", "\"b\"");
}

static struct buf repeat(const char *before, const char *piece, int n, const char *after)
{
	struct buf b = BUF_NULL;

	buf_str_append(&b, str_of(before));
	for (int i = 0; i < n; i++)
		buf_str_append(&b, str_of(piece));
	buf_str_append(&b, str_of(after));
	buf_putc(&b, '\0');
	expect(!b.failed);
	return b;
}

/* Work, steps and nesting end at a bound, whatever the document and the path are. */
TEST(bounds)
{
	struct buf json = repeat("", "[1,", 90, "1");
	struct buf deep = repeat("", "..*", 30, ""), steps = repeat("", ".a", 2000, "");
	struct buf nested = repeat("[?", "(", 60, "@"), open = repeat("", "[?(@", 300, "");
	struct buf text = repeat("", "x", 20000, ""), close = repeat("", "]", 90, "");
	struct buf whole = BUF_NULL;
	const struct {
		const char *json, *path, *said;
	} bounded[] = {
		{"", deep.p, "this path looks at more than 10000000 values of the JSON"},
		{"[]", steps.p, "this is no path: it has too many parts (byte 2002)"},
		{"[]", nested.p, "this is no path: its conditions are nested too deep (byte 52)"},
		{"[]", text.p, "this is no path: it is longer than 16384 bytes (byte 0)"},
		{"[]", open.p, "this is no path: its conditions are nested too deep (byte 102)"},
	};

	buf_printf(&whole, "%s%s", json.p, close.p);
	buf_putc(&whole, '\0');
	for (size_t i = 0; i < COUNT(bounded); i++) {
		char *got = find(i ? bounded[i].json : whole.p, bounded[i].path);

		if (!strstr(got, bounded[i].said))
			test_fail(__FILE__, __LINE__, "got: %.300s\nexpected: %s", got,
				  bounded[i].said);
		free(got);
	}
	buf_free(&json);
	buf_free(&deep);
	buf_free(&steps);
	buf_free(&nested);
	buf_free(&open);
	buf_free(&text);
	buf_free(&close);
	buf_free(&whole);
}

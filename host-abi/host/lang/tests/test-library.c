/* SPDX-License-Identifier: Apache-2.0 */
/* The library's functions on text; what Go's packages give for the same. */
#include "host/lang/tests/test-lang.h"

TEST(strings)
{
	expect_value("string.join([\"a\", \"b\"], \", \")", "\"a, b\"");
	expect_value("string.join([], \", \")", "\"\"");
	expect_value("string.replace(\"banana\", \"an\", \"-\")", "\"b--a\"");
	expect_value("string.replace(\"ab\", \"\", \"-\")", "\"-a-b-\"");
	expect_value("string.split(\"a,b,,c\", \",\")", "[\"a\" \"b\" \"\" \"c\"]");
	expect_value("string.split(\"ab\", \"\")", "[\"a\" \"b\"]");
	expect_value("string.split(\"\", \",\")", "[\"\"]");
	expect_value("string.split(\"\", \"\")", "[]");
	expect_value("string.to_lower(\"ABc\")", "\"abc\"");
	expect_value("string.to_upper(\"abC\")", "\"ABC\"");
	expect_value("string.trim(\"?!hello?!\", \"!?\")", "\"hello\"");
	expect_value("string.trim(\"éaé\", \"é\")", "\"a\"");
	expect_value("string.trim_prefix(\"helloworld\", \"hello\")", "\"world\"");
	expect_value("string.trim_suffix(\"helloworld\", \"world\")", "\"hello\"");
	expect_value("string.trim_space(\"  a b \")", "\"a b\"");
}

TEST(formats)
{
	expect_value("string.format(\"x\")", "\"x\"");
	expect_value("string.format(\"%d%% of %s\", 5, \"it\")", "\"5% of it\"");
	expect_value("string.format(\"%v %v %v\", 1.5, true, null)", "\"1.5 true <nil>\"");
	expect_value("string.format(\"[%5s|%-5s|%.2s]\", \"ab\", \"é\", \"abc\")",
		     "\"[   ab|é    |ab]\"");
	expect_value("string.format(\"%03d %x %b %.2f %q\", 7, 255, 5, 1.005, \"a\\\"b\")",
		     "\"007 ff 101 1.00 \"a\\\"b\"\"");
	expect_value("string.format(\"%v\", 18446744073709551615)", "\"18446744073709551615\"");
	expect_value("string.format(\"%d %x %b\", 18446744073709551615, 18446744073709551615,"
		     " 9223372036854775808)",
		     "\"18446744073709551615 ffffffffffffffff "
		     "1000000000000000000000000000000000000000000000000000000000000000\"");
	expect_value("string.format(\"%[2]s-%[1]s-%s|%4.1[3]f\", \"a\", \"b\", 1.25)",
		     "\"b-a-b| 1.2\"");
	expect_no_value("string.format(\"%v\", {a = 1})",
		    "f:2:31: error: string.format takes text or a number here, not an object\n"
		    "    2 |   value = string.format(\"%v\", {a = 1})\n"
		    "      |                               ^~~~~~~\n");
}

/* What does not fit is written as Go writes it, and warned of; in one line. */
static void expect_unfit(const char *arguments, const char *expected)
{
	struct buf source = BUF_NULL;
	const char *value;
	char *plan;

	buf_printf(&source, "test.any \"a\" {\n  value = string.format(%s)\n}\n", arguments);
	plan = plan_text(buf_str(&source));
	expect(strstr(plan, "f:2:25: warning: the format does not fit its values\n"));
	value = strstr(plan, "{value=\"");
	expect(value);
	expect_str(str_of(value + strlen("{value=\"")), expected);
	free(plan);
	buf_free(&source);
}

TEST(formats_what_does_not_fit)
{
	expect_unfit("\"%d %s %t\", \"x\", 5, null", "%!d(string=x) %!s(int=5) %!t(<nil>)\"}\n");
	expect_unfit("\"%d %q %.2s\", 1.5, true, 5",
		     "%!d(float64=1.5) %!q(bool=true) %!s(int=05)\"}\n");
	expect_unfit("\"%y %é\", 1, 18446744073709551615",
		     "%!y(int=1) %!é(uint64=18446744073709551615)\"}\n");
	expect_unfit("\"%v %d|%s\", [1, \"a\", null], [1, \"a\"]",
		     "[1 a <nil>] [1 %!d(string=a)]|%!s(MISSING)\"}\n");
	expect_unfit("\"%[3]d %[0]s %[x]d %[2]s\", 1, \"b\"",
		     "%!d(BADINDEX) %!s(BADINDEX) %!d(BADINDEX) b\"}\n");
	expect_unfit("\"a\", 1, null, \"x\"", "a%!(EXTRA int=1, <nil>, string=x)\"}\n");
	expect_unfit("\"%*d|%.*f\", \"x\", 5, -1, 1.5",
		     "%!(BADWIDTH)5|%!(BADPREC)1.500000\"}\n");
	expect_unfit("\"%*s|%[1]5d|%[1].2f|%[9]*[2]d|%[2]*[3]d|%[d\", \"x\", 3, 4",
		     "%!(BADWIDTH)%!s(int=3)|%!d(BADINDEX)|%!f(BADINDEX)|"
		     "%!(BADWIDTH)%!d(BADINDEX)|  4|%!d(BADINDEX)\"}\n");
	expect_unfit("\"100%\"", "100%!(NOVERB)\"}\n");
}

/* Each line is what Go's fmt.Sprintf gives, which is what Alloy calls. */
TEST(formats_as_go_does)
{
	expect_value("string.format(\"%08b|%#b|%+b|%-8b|% b|%.6b\", 5, 5, 5, 5, 5, 5)",
		     "\"00000101|0b101|+101|101     | 101|000101\"");
	expect_value("string.format(\"%x|%X|%o|%b|%#X|%#o|%+x|%08x|%#08x\", -255, -255, -8, -5,"
		     " 255, 8, 255, -255, 255)",
		     "\"-ff|-FF|-10|-101|0XFF|010|+ff|-00000ff|0x000000ff\"");
	expect_value("string.format(\"%-8x|%8x|%.4x|%8.4x\", 255, 255, 255, 255)",
		     "\"ff      |      ff|00ff|    00ff\"");
	expect_value("string.format(\"%+d|% d|%05d|%-5d|%5d|%.3d|%08.3d|%+05d|%-05d\", 42, 42,"
		     " 42, 42, 42, 42, 42, 42, 42)",
		     "\"+42| 42|00042|42   |   42|042|     042|+0042|42   \"");
	expect_value("string.format(\"%g|%g|%g|%g|%.3G|%g\", 3.14159265358979, 1e6, 123456.0,"
		     " 0.00001, 1e-7, 0.1)",
		     "\"3.14159265358979|1e+06|123456|1e-05|1E-07|0.1\"");
	expect_value("string.format(\"%5.2f|%-8.1f|%+.1f|%08.2f|% f|%e|%E|%.0f\", 1.005,"
		     " 1.25, 1.25, -1.5, 1.5, 123456.789, 0.00012, 2.5)",
		     "\" 1.00|1.2     |+1.2|-0001.50| 1.500000|1.234568e+05|1.200000E-04|2\"");
	expect_value("string.format(\"%.3g|%10.3g|%-10g|%010g|%+g\", 1234.5, 1234.5, 1.5, 1.5,"
		     " 1.5)",
		     "\"1.23e+03|  1.23e+03|1.5       |00000001.5|+1.5\"");
	expect_value("string.format(\"%05v|%+v|%6v|%-6v|%06v|%.2v|%.2v|%5t|%6.2v\", 42, 42, 42,"
		     " 42, 1.5, 3.14159, \"hello\", true, 3.14159)",
		     "\"00042|42|    42|42    |0001.5|3.1|he| true|   3.1\"");
	expect_value("string.format(\"%q|%5q|%-5q|%.2q\", \"a\\tb\\r\\n\\x01\\\\\\x7f\", \"ab\","
		     " \"ab\", \"abc\")",
		     "\"\"a\\tb\\r\\n\\x01\\\\\\x7f\"| \"ab\"|\"ab\" |\"ab\"\"");
	expect_value("string.format(\"%*d|%-*d|%*d|%.*f|%[2]*[1]d|%[1]d\", 5, 42, 5, 42, -5, 42,"
		     " 2, 3.14159)",
		     "\"   42|42   |42   |3.14|                                         5|5\"");
	expect_value("string.format(\"%c%c|%5c|%q|%q|%U|%08U\", 65, 19990, 65, 65, 39, 65,"
		     " 128512)",
		     "\"A世|    A|'A'|'\\''|U+0041| U+1F600\"");
	expect_value("string.format(\"%T %T %T %T %T %T\", 5, 1.5, \"a\", true, null, [1])",
		     "\"int float64 string bool <nil> []interface {}\"");
	expect_value("string.format(\"%x|%X|%.2x|%6x|%O|%#o\", \"hé\", \"hey\", \"hey\","
		     " \"h\", 8, 0)",
		     "\"68c3a9|686579|6865|    68|0o10|0\"");
	expect_value("string.format(\"%g|%v|%g|%g|%g|%g|%g|%G\", 1234567.5, 1234567.5, 1e20,"
		     " 0.0001, 123456789.0, 0.5, 100.0, 1.5e9)",
		     "\"1.2345675e+06|1.2345675e+06|1e+20|0.0001|1.23456789e+08|0.5|100|1.5E+09\"");
	expect_value("string.format(\"%v|%+v|%#v|%s|%5.1f%%\", [1, [\"a\"]], 5, \"a\","
		     " [\"q\"], 1.25)",
		     "\"[1 [a]]|5|\"a\"|[q]|  1.2%\"");
	expect_value("string.format(\"%.2s|%05s|%-5s|%5s\", \"éàü\", \"ab\", \"ab\", \"é\")",
		     "\"éà|000ab|ab   |    é\"");
}

TEST(encodings)
{
	expect_value("encoding.to_base64(\"string123!?$*&()'-=@~\")",
		     "\"c3RyaW5nMTIzIT8kKiYoKSctPUB+\"");
	expect_value("encoding.to_URLbase64(\"string123!?$*&()'-=@~\")",
		     "\"c3RyaW5nMTIzIT8kKiYoKSctPUB-\"");
	expect_value("encoding.from_base64(\"YQ==\")", "\"a\"");
	expect_value("encoding.from_base64(\"YWJj\\n\")", "\"abc\"");
	expect_value("encoding.to_base64(\"ab\")", "\"YWI=\"");
	expect_value("encoding.from_URLbase64(\"c3RyaW5nMTIzIT8kKiYoKSctPUB-\")",
		     "\"string123!?$*&()'-=@~\"");
	expect_value("encoding.url_encode(\"a b/ü&\")", "\"a+b%2F%C3%BC%26\"");
	expect_value("encoding.url_decode(\"a+b%2F%c3%bc\")", "\"a b/ü\"");
	expect_no_value("encoding.from_base64(\"YQ\")",
		    "f:2:32: error: this is not base64\n"
		    "    2 |   value = encoding.from_base64(\"YQ\")\n"
		    "      |                                ^~~~\n");
	expect_no_value("encoding.from_base64(\"/w==\")",
		    "f:2:32: error: it encodes no UTF-8 text\n"
		    "    2 |   value = encoding.from_base64(\"/w==\")\n"
		    "      |                                ^~~~~~\n");
	expect_no_value("encoding.url_decode(\"%4\")",
		    "f:2:31: error: this is not encoded for a URL\n"
		    "    2 |   value = encoding.url_decode(\"%4\")\n"
		    "      |                               ^~~~\n");
}

TEST(json)
{
	expect_value("encoding.from_json(`{\"a\": [1, 2.5, -3e2, true, null], \"b\": {}}`)",
		     "{a=[1 2.5f -300f true null] b={}}");
	expect_value("encoding.from_json(` [ ] `)", "[]");
	expect_value("encoding.from_json(`\"\\u00e4\\n\\ud83d\\ude00\\ud800x\"`)",
		     "\"ä\n😀\xef\xbf\xbdx\"");
	expect_value("encoding.from_json(`{\"a\": {\"b\": [7]}}`).a.b[0]", "7");
	expect_value("encoding.to_json({a = [1, \"x\\ny\", null], \"b c\" = {d = 0.5}})",
		     "\"{\"a\":[1,\"x\\ny\",null],\"b c\":{\"d\":0.5}}\"");
	expect_no_value("encoding.from_json(`{\"a\" 1}`)",
		    "f:2:30: error: this is not JSON: behind a member's name stands : (byte 5)\n"
		    "    2 |   value = encoding.from_json(`{\"a\" 1}`)\n"
		    "      |                              ^~~~~~~~~\n");
	expect_no_value("encoding.from_json(`[1,]`)",
		    "f:2:30: error: this is not JSON: this is no value (byte 3)\n"
		    "    2 |   value = encoding.from_json(`[1,]`)\n"
		    "      |                              ^~~~~~\n");
	expect_no_value("encoding.from_json(`[1] 2`)",
		    "f:2:30: error: this is not JSON: something stands behind its end (byte 4)\n"
		    "    2 |   value = encoding.from_json(`[1] 2`)\n"
		    "      |                              ^~~~~~~\n");
	expect_no_value("encoding.from_json(`\"\\x\"`)",
		    "f:2:30: error: this is not JSON: a string holds an unknown escape (byte 2)\n"
		    "    2 |   value = encoding.from_json(`\"\\x\"`)\n"
		    "      |                              ^~~~~~\n");
	expect_no_value("encoding.from_json(``)",
		    "f:2:30: error: this is not JSON: this is no value (byte 0)\n"
		    "    2 |   value = encoding.from_json(``)\n"
		    "      |                              ^~\n");
	expect_no_value("encoding.to_json([1])",
		    "f:2:28: error: encoding.to_json takes an object here, not a list\n"
		    "    2 |   value = encoding.to_json([1])\n"
		    "      |                            ^~~\n");
}

TEST(paths)
{
	expect_value("file.path_join(\"a\", \"b/../c\", \"/d\")", "\"a/c/d\"");
	expect_value("file.path_join(\"/\", \"..\", \"x\")", "\"/x\"");
	expect_value("file.path_join(\"..\", \"..\", \"x\")", "\"../../x\"");
	expect_value("file.path_join(\"a\", \"..\")", "\".\"");
	expect_value("file.path_join()", "\"\"");
	expect_value("file.path_join(module_path, \"x\")", "\"x\"");
}

/* As arguments of components: a number becomes a text, null the empty one. */
TEST(numbers_and_null_are_texts)
{
	expect_value("string.join([\"a\", 1, 2.5, null], 0)", "\"a0102.50\"");
	expect_value("string.join(null, \",\")", "\"\"");
	expect_value("string.replace(\"a-b\", \"-\", 1)", "\"a1b\"");
	expect_value("string.split(\"a1b\", 1)", "[\"a\" \"b\"]");
	expect_value("string.to_upper(null)", "\"\"");
	expect_value("file.path_join(\"a\", 1, null)", "\"a/1\"");
	expect_value("encoding.url_encode(8080)", "\"8080\"");
}

TEST(wrong_arguments)
{
	expect_no_value("string.join(\"a\", \"b\")",
		    "f:2:23: error: string.join takes a list of strings here, not a string\n"
		    "    2 |   value = string.join(\"a\", \"b\")\n"
		    "      |                       ^~~\n");
	expect_no_value("string.join([true], \"b\")",
		    "f:2:23: error: string.join takes a list of strings alone here, not true\n"
		    "    2 |   value = string.join([true], \"b\")\n"
		    "      |                       ^~~~~~\n");
	expect_no_value("string.to_lower(\"a\", \"b\")",
		    "f:2:11: error: string.to_lower takes 1 value, not 2\n"
		    "    2 |   value = string.to_lower(\"a\", \"b\")\n"
		    "      |           ^~~~~~~~~~~~~~~~~~~~~~~~~\n"
		    "  write string.to_lower(TEXT)\n");
	expect_no_value("string.trim([], \"b\")",
		    "f:2:23: error: string.trim takes a string here, not a list\n"
		    "    2 |   value = string.trim([], \"b\")\n"
		    "      |                       ^~\n");
	expect_no_value("to_lower(\"A\")",
		    "f:2:11: warning: to_lower is deprecated; write string.to_lower\n"
		    "    2 |   value = to_lower(\"A\")\n"
		    "      |           ^~~~~~~~\n"
		    "node test.any.a: {value=\"a\"}\n");
}

/* What doubles again and again ends at a bound. */
TEST(growth_ends)
{
	char *text = NULL, *plan;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	fputs("test.any \"a\" {\n  value = ", f);
	for (int i = 0; i < 40; i++)
		fputs("string.replace(", f);
	fputs("\"a\"", f);
	for (int i = 0; i < 40; i++)
		fputs(", \"a\", \"aa\")", f);
	fputs("\n}\n", f);
	fclose(f);
	plan = plan_text(str_of(text));
	expect(strstr(plan, "this text is longer than 1048576 bytes"));
	free(plan);
	free(text);
}

/* Alloy's examples, and what is not said there: order, a key in both, objects without the key. */
TEST(maps_are_combined)
{
	expect_value("array.combine_maps([{\"i\" = \"a\", \"x\" = 1}], [{\"i\" = \"a\", \"x\" = 2, "
		     "\"y\" = 3}], [\"i\"])",
		     "[{i=\"a\" x=2 y=3}]");
	expect_value("array.combine_maps([{\"i\" = 1}, {\"i\" = 2}], "
		     "[{\"i\" = 2, \"n\" = 1}, {\"i\" = 2, \"n\" = 2}, {}], [\"i\"])",
		     "[{i=2 n=1} {i=2 n=2}]");
	expect_value("array.combine_maps([{\"i\" = 1}, {\"i\" = 2}], "
		     "[{\"i\" = 2, \"n\" = 1}], [\"i\"], true)",
		     "[{i=1} {i=2 n=1}]");
	expect_value("array.combine_maps([{\"a\" = 1, \"b\" = 2}], "
		     "[{\"a\" = 1, \"b\" = 3}], [\"a\", "
		     "\"b\"])",
		     "[]");
	expect_value("array.combine_maps([], [], [\"a\"])", "[]");
	expect_no_value("array.combine_maps([], [], [])",
		    "f:2:38: error: array.combine_maps takes a list of keys here; this one holds "
		    "nothing\n"
		    "    2 |   value = array.combine_maps([], [], [])\n"
		    "      |                                      ^~\n");
	expect_no_value("array.combine_maps([1], [], [\"a\"])",
		    "f:2:30: error: array.combine_maps takes a list of objects here; this one "
		    "holds something else\n"
		    "    2 |   value = array.combine_maps([1], [], [\"a\"])\n"
		    "      |                              ^~~\n");
	expect_no_value("array.combine_maps([], [], [\"a\"], 1)",
		    "f:2:45: error: array.combine_maps takes true or false here, not a number\n"
		    "    2 |   value = array.combine_maps([], [], [\"a\"], 1)\n"
		    "      |                                             ^\n");
	expect_no_value("array.combine_maps([])",
		    "f:2:11: error: array.combine_maps takes at least 3 values, not 1\n"
		    "    2 |   value = array.combine_maps([])\n"
		    "      |           ^~~~~~~~~~~~~~~~~~~~~~\n"
		    "  write array.combine_maps(LIST, LIST, KEYS[, KEEP_LEFT])\n");
}

/* Alloy's examples; groups come in the order of their first objects, so that a reload finds the
 * same. */
TEST(maps_are_grouped)
{
	expect_value("array.group_by([{\"t\" = \"f\", \"n\" = 1}, {\"t\" = \"v\"}, {\"n\" = 2}, "
		     "{\"t\" = \"f\", \"n\" = 3}], \"t\", false)",
		     "[{t=\"f\" items=[{t=\"f\" n=1} {t=\"f\" n=3}]} {t=\"v\" items=[{t=\"v\"}]} "
		     "{t=\"\" items=[{n=2}]}]");
	expect_value("array.group_by([{\"t\" = \"f\", \"n\" = 1}, {\"n\" = 2}], \"t\", true)",
		     "[{t=\"f\" items=[{t=\"f\" n=1}]}]");
	/* An empty text and none are one group, as in Alloy. */
	expect_value("array.group_by([{\"a\" = 1}, {\"t\" = \"\"}], \"t\", false)",
		     "[{t=\"\" items=[{a=1} {t=\"\"}]}]");
	expect_value("array.group_by([{\"items\" = \"x\"}], \"items\", false)",
		     "[{items=[{items=\"x\"}]}]");
	expect_value("array.group_by([], \"t\", false)", "[]");
	expect_no_value("array.group_by([{}, 1], \"t\", true)",
		    "f:2:31: error: array.group_by takes a list of objects here, and this is a "
		    "number\n"
		    "    2 |   value = array.group_by([{}, 1], \"t\", true)\n"
		    "      |                               ^\n");
	expect_no_value("array.group_by([{\"t\" = 1}], \"t\", true)",
		    "f:2:27: error: array.group_by groups by strings, and the t of this object is "
		    "a number\n"
		    "    2 |   value = array.group_by([{\"t\" = 1}], \"t\", true)\n"
		    "      |                           ^~~~~~~~~\n"
		    "  string.format(\"%v\", VALUE) makes a string of a number\n");
	expect_no_value("array.group_by([], \"t\", 1)",
		    "f:2:35: error: array.group_by takes true or false here, not a number\n"
		    "    2 |   value = array.group_by([], \"t\", 1)\n"
		    "      |                                   ^\n");
}

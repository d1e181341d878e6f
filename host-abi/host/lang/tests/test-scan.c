/* SPDX-License-Identifier: Apache-2.0 */
/* The scanner: token by token. */
#include "host/lang/syntax/scan.h"

#include "base/buf.h"
#include "testing/test.h"

/* Tokens as text: ; for a terminator, !text for an illegal one. */
static void expect_tokens(const char *text, const char *expected)
{
	struct source source = {"f", str_of(text)};
	struct scanner s = scanner_of(&source);
	struct buf b = BUF_NULL;
	struct token t;

	for (t = scan(&s); t.kind != TOKEN_EOF; t = scan(&s)) {
		if (b.n)
			buf_putc(&b, ' ');
		if (t.kind == TOKEN_TERMINATOR)
			buf_putc(&b, ';');
		if (t.kind == TOKEN_ILLEGAL)
			buf_putc(&b, '!');
		buf_str_append(&b, t.text);
	}
	expect(!b.failed);
	expect_str(buf_str(&b), expected);
	expect_eq(scan(&s).kind, TOKEN_EOF);
	buf_free(&b);
}

/* Terminators: Alloy's rule, which counts inside brackets and over comments. */
TEST(a_line_end_terminates_what_can_end)
{
	expect_tokens("a = 1\nb = [\n2,\n]\n", "a = 1 ; b = [ 2 , ] ;");
	expect_tokens("a = [\n1\n]", "a = [ 1 ; ] ;");
	expect_tokens("a {\n}\n\n\nb", "a { } ; b ;");
	expect_tokens("a // x\nb", "a ; b ;");
	expect_tokens("a /* x */ b", "a b ;");
	expect_tokens("a /* x\n */ b", "a ; b ;");
	expect_tokens("a /* x */ // y\nb", "a ; b ;");
	expect_tokens("true\nnull\n1.5\n\"s\"\n`r`\n)", "true ; null ; 1.5 ; \"s\" ; `r` ; ) ;");
	expect_tokens("a +\nb", "a + b ;");
	expect_tokens("// only\n/* this */", "");
	expect_tokens("\xef\xbb\xbf"
		      "a",
		      "a ;");
	expect_tokens("a\r\nb\t c", "a ; b c ;");
}

TEST(numbers)
{
	expect_tokens("1 1. .5 1e3 1E+3 1.5e-2", "1 1. .5 1e3 1E+3 1.5e-2 ;");
	expect_tokens("1_000 0x1f", "1 _000 0 x1f ;");
	expect_tokens("1e", "!1e ;");
	expect_tokens("a.1", "a .1 ;");
}

TEST(identifiers)
{
	expect_tokens("_a1 ä β_2 a-b", "_a1 ä β_2 a - b ;");
	expect_tokens("a→b", "a !→ b ;");
	expect(scan_is_ident(STR("abc_1")));
	expect(!scan_is_ident(STR("")) && !scan_is_ident(STR("1a")));
	expect(!scan_is_ident(STR("a.b")) && !scan_is_ident(STR("null")));
}

TEST(operators)
{
	expect_tokens("||&&!===!=<=>=<>+-*/%^{}()[],.=",
		      "|| && != == != <= >= < > + - * / % ^ { } ( ) [ ] , . =");
}

/* What other languages have is named, not just refused. */
TEST(illegal_characters)
{
	expect_tokens("a # b\nc", "a !# b ; c ;");
	expect_tokens("'x' y", "!'x' y ;");
	expect_tokens("'it\nx", "!'it ; x ;");
	expect_tokens("a; b", "a !; b ;");
	expect_tokens("“a”", "!“ a !” ;");
	expect_tokens("\"open\nx", "!\"open ; x ;");
	expect_tokens("\"a\\\"b\" \"\\\\\"", "\"a\\\"b\" \"\\\\\" ;");
	expect_tokens("a /* open\nx", "a !/* open\nx ;");
	expect_tokens("`open\nx", "!`open\nx ;");
	expect_tokens("&|", "!& !| ;");
}

/* Lines and columns hold behind strings and comments of several lines. */
TEST(places)
{
	struct source source = {"f", STR("a `x\ny` /* \n */ b\n  c")};
	struct scanner s = scanner_of(&source);
	static const uint32_t expected[][3] = {{1, 1, 1}, {1, 3, 5}, {2, 3, 0}, {3, 5, 1},
					       {3, 6, 0}, {4, 3, 1}, {4, 4, 0}, {4, 4, 0}};

	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		struct token t = scan(&s);

		expect_eq(t.place.line, expected[i][0]);
		expect_eq(t.place.column, expected[i][1]);
		expect_eq(t.place.length, expected[i][2]);
	}
}

TEST(escapes)
{
	static const struct {
		const char *text;
		size_t n;
		uint32_t value;
	} cases[] = {
		{"\\n", 2, '\n'},      {"\\\"", 2, '"'},
		{"\\101", 4, 'A'},     {"\\400", 0, 0},
		{"\\18", 0, 0},        {"\\x41z", 4, 'A'},
		{"\\x4", 0, 0},        {"\\u00e4", 6, 0xe4},
		{"\\ud800", 0, 0},     {"\\U0001f525", 10, 0x1f525},
		{"\\U00110000", 0, 0}, {"\\'", 0, 0},
		{"\\", 0, 0},          {"\\q", 0, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t value;
		bool byte;
		size_t n = scan_escape(str_of(cases[i].text), &value, &byte);

		expect_eq(n, cases[i].n);
		if (n)
			expect_eq(value, cases[i].value);
	}
}

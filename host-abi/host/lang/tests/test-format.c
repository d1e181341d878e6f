/* SPDX-License-Identifier: Apache-2.0 */
/* The formatter: golden cases, where it differs from Alloy's, and hostile text. */
#include "host/lang/syntax/format.h"

#include "base/file.h"
#include "testing/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

/* Some comments within expressions wander for a few passes, as they do in Alloy; then all rests. */
#define MAX_PASSES 10

static int format(struct str text, struct buf *out)
{
	struct source source = {"f", text};
	struct diags diags = {.arena = ARENA_NULL};
	int r = format_source(&source, &diags, out);

	expect_eq(r == -EINVAL, diags.n_errors > 0);
	expect(r == 0 || out->n == 0);
	diags_free(&diags);
	return r;
}

static void expect_format(const char *name, struct str text, struct str expected)
{
	struct buf out = BUF_NULL;

	expect_eq(format(text, &out), 0);
	if (!str_eq(buf_str(&out), expected))
		test_fail(__FILE__, __LINE__, "%s: got:\n%.*s\nexpected:\n%.*s", name,
			  STR_FMT(buf_str(&out)), STR_FMT(expected));
	buf_free(&out);
}

#define expect_formatted(text, expected) expect_format("", STR(text), STR(expected))

/* A stretch up to `mark`, which goes, too. */
static struct str cut_to(struct str *rest, struct str mark)
{
	size_t n = str_search(*rest, mark);
	struct str part = str_first(*rest, n);

	*rest = str_skip(*rest, n + mark.n);
	return part;
}

/* What Alloy's formatter gives, byte for byte. */
TEST(golden_cases)
{
	struct buf file = BUF_NULL;
	unsigned int n_cases = 0;
	struct str rest;

	expect_eq(file_read(AT_FDCWD, getenv("FORMAT_CASES"), &file, 1 << 20), 0);
	rest = buf_str(&file);
	cut_to(&rest, STR("\n== "));
	for (; rest.n; n_cases++) {
		struct str part = cut_to(&rest, STR("\n== "));
		struct str name = str_cut(&part, '\n');
		struct str text = cut_to(&part, STR("\n--\n"));
		char *label = str_dup(name);

		expect(label);
		expect_format(label, text, part);
		free(label);
	}
	expect(n_cases >= 25);
	buf_free(&file);
}

/* Ends of lines and of the file, in every form that editors leave behind. */
TEST(takes_any_line_end)
{
	expect_formatted("", "\n");
	expect_formatted("\n\n  \n", "\n");
	expect_formatted("a=1", "a = 1\n");
	expect_formatted("a=1\n\n\n", "a = 1\n");
	expect_formatted("\xef\xbb\xbf"
			 "a=1 // b",
			 "a = 1 // b\n");
	expect_formatted("a=1 // b\r\n\r\n\r\nrule{ // c\r\n/* d\r\ne */\r\n}\r\n// f\r",
			 "a = 1 // b\n\nrule { // c\n\t/* d\ne */\n}\n// f\n");
	expect_formatted("a=`b\r\nc`\r\n", "a = `b\r\nc`\n");
	expect_formatted("// a  \na=1\t\n", "// a  \na = 1\n");
}

/* Strings mean the same afterwards; Alloy's formatter turns their tabs into columns, cuts blanks at
 * the ends of lines and escapes the escapes of keys. */
TEST(leaves_strings_alone)
{
	expect_formatted("a=\"x\ty\"\nbb=2\n", "a  = \"x\ty\"\nbb = 2\n");
	expect_formatted("a=`x\ty  \n\t \tz\t\n  `\n", "a = `x\ty  \n\t \tz\t\n  `\n");
	expect_formatted("a_rather_long_name=`\n\tx\n`\n", "a_rather_long_name = `\n\tx\n`\n");
	expect_formatted("a={\"b\\\"c\"=1}\n", "a = {\"b\\\"c\" = 1}\n");
	expect_formatted("a={`b\"c`=1}\n", "a = {`b\"c` = 1}\n");
}

/* Alloy's formatter writes "f(,". */
TEST(adds_no_comma_to_nothing)
{
	expect_formatted("a = f(\n)\n", "a = f()\n");
}

/* A comment never swallows what stands behind it, and never breaks a line that must not end. */
TEST(keeps_comments_apart)
{
	expect_formatted("a = b.// c\nd\n", "a = b. // c\nd\n");
	expect_formatted("a = f( // c\n)\nb = 1\n", "a = f() // c\n\nb = 1\n");
	expect_formatted("foo. // c\nbar {}\n", "foo. // c\nbar { }\n");
	expect_formatted("a = [f( // c\n)]\n", "a = [f( // c\n)]\n");
}

/* Nothing is formatted that does not parse, and the messages are the parser's. */
TEST(refuses_what_does_not_parse)
{
	static const char *const broken[] = {
		"a = \n", "a {\n", "a = [1\n]\n", "/* a", "a = \"b\n", "}", "a = 1 b = 2\n", "\xff",
	};

	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		struct buf out = BUF_NULL;

		expect_eq(format(str_of(broken[i]), &out), -EINVAL);
		buf_free(&out);
	}
	expect_eq(format(STR("a\0"), &(struct buf){0}), -EINVAL);
}

/* One long name beside many lines must not make each of them as long. */
TEST(bounds_what_alignment_adds)
{
	struct buf text = BUF_NULL, out = BUF_NULL;

	for (int i = 0; i < 100000; i++)
		buf_putc(&text, 'a');
	for (int i = 0; i < 10000; i++)
		buf_str_append(&text, STR(" = 1\nb"));
	buf_str_append(&text, STR(" = 1\n"));
	expect(!text.failed);
	expect_eq(format(buf_str(&text), &out), -EINVAL);
	buf_free(&text);
	buf_free(&out);
}

static int format_once(void *context)
{
	struct source source = {"f", *(struct str *)context};
	struct diags diags = {.arena = ARENA_NULL};
	struct buf out = BUF_NULL;
	int r = format_source(&source, &diags, &out);

	expect(r == 0 || out.n == 0);
	buf_free(&out);
	diags_free(&diags);
	return r;
}

TEST(survives_out_of_memory)
{
	struct str text = STR("// a\na.b \"c\" { d = [1, // e\n{`f` = \"g\", hh = 2},]\n"
			      "// h\n i = f(\n1) }\nfoo. // c\nbar {}\n");

	test_each_failing_allocation(format_once, &text);
}

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Formats what it gave until nothing changes; whether it was no error to begin with. */
static bool settle(struct str text)
{
	struct buf last = BUF_NULL, now = BUF_NULL;
	int r = format(text, &last), passes = 0;

	for (bool same = r < 0; !same; passes++) {
		expect(passes < MAX_PASSES);
		expect_eq(format(buf_str(&last), &now), 0);
		same = str_eq(buf_str(&last), buf_str(&now));
		buf_free(&last);
		last = now;
		now = BUF_NULL;
	}
	buf_free(&last);
	return r == 0;
}

static const char *const pieces[] = {
	"a", "bb", "1", "2.5", "\"c\"", "`d\n\te`", "= ", "= ", "= ", "\n", "\n", "\n\n", " ", "\t",
	"[", "]", "{", "}", "(", ")", ",", ", ", ",\n", ".", "-", "!", "+", "/", "^", "&&", "==",
	"// f\n", "// f\n", "/* g */", "/* h\ni */", "\r\n", "a = 1\n", "b \"l\" {\n", "c = [\n",
	"d = {\n", "\"k\" = 1,\n", "f(", "é", "true",
};

#define N_PIECES (sizeof(pieces) / sizeof(pieces[0]))

/* Valid text with things put between its tokens, at random: what parses is formatted without loss
 * (the formatter looks itself), and comes to rest. ANDIRON_FUZZ_RUNS sets the number of rounds. */
TEST(random_changes)
{
	static const char *const seeds[] = {
		"a = [ 1 , x , { b = 2 , \"c\" = [ 3 ] } ]\nrule { d = f ( 1 , g ( ) ) }\n",
		"a . b \"c\" {\n rule { }\n d = ( 1 + - 2 ) . e [ 0 ]\n e = 1\n}\nf = `g\n\th`\n",
		"a = { b = 1 ,\n cc = 2 ,\n d = {\n e = [\n 1 ,\n ] ,\n } ,\n}\nb = ! c . d\n",
	};
	const char *wish = getenv("ANDIRON_FUZZ_RUNS");
	unsigned long runs = wish ? strtoul(wish, NULL, 10) : 4000, n_good = 0;
	uint64_t state = 0x666f726d6174ull;

	for (unsigned long i = 0; i < runs; i++) {
		struct str seed = str_of(seeds[i % 3]);
		struct buf b = BUF_NULL;

		while (seed.n) {
			size_t n = str_find(seed, ' ');

			buf_str_append(&b, str_first(seed, n + 1));
			seed = str_skip(seed, n + 1);
			/* Mostly comments and blanks, so that much of it parses. */
			if (next(&state) % 8 == 0)
				buf_str_append(&b, str_of(pieces[31 + next(&state) % 5]));
			if (next(&state) % 100 == 0)
				buf_str_append(&b, str_of(pieces[next(&state) % N_PIECES]));
		}
		expect(!b.failed);
		n_good += settle(buf_str(&b));
		buf_free(&b);
	}
	expect(n_good > runs / 10);
}

TEST(random_pieces)
{
	uint64_t state = 0x70696563657332ull;

	for (unsigned long i = 0; i < 4000; i++) {
		struct buf b = BUF_NULL;

		buf_str_append(&b, STR("a = "));
		for (uint64_t n = next(&state) % 30; n > 0; n--)
			buf_str_append(&b, str_of(pieces[next(&state) % N_PIECES]));
		expect(!b.failed);
		settle(buf_str(&b));
		buf_free(&b);
	}
}

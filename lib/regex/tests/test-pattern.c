/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of the regular expressions. A second matcher, slow and plain, decides what is right:
 * it walks the program and backtracks, as leftmost-first matching is defined. What the syntax means
 * is the golden tables' matter. */
#include "regex/alphabet.h"
#include "base/buf.h"
#include "base/clock.h"
#include "testing/test.h"
#include "regex/pattern.h"
#include "regex/program.h"

#include <errno.h>
#include <stdlib.h>

#define SLOTS 32

struct slow {
	const struct program *program;
	struct str text;
	size_t slots[SLOTS];
	uint8_t tried[512][16]; /* by instruction and position: no way through */
};

static bool slow_holds(const struct slow *s, int32_t assertion, size_t at)
{
	bool begin = at == 0, end = at == s->text.n;
	char before = begin ? '\n' : s->text.p[at - 1], after = end ? '\n' : s->text.p[at];
	bool edge = (before == '\n') != (after == '\n'); /* all others are letters */

	switch (assertion) {
	case AT_TEXT_BEGIN:
		return begin;
	case AT_TEXT_END:
		return end;
	case AT_LINE_BEGIN:
		return begin || before == '\n';
	case AT_LINE_END:
		return end || after == '\n';
	default:
		return edge == (assertion == AT_WORD_EDGE);
	}
}

static bool slow_has(const struct slow *s, int32_t set, size_t at)
{
	vec_each (&s->program->sets.p[set], range)
		if ((unsigned char)s->text.p[at] >= range->first &&
		    (unsigned char)s->text.p[at] <= range->last)
			return true;
	return false;
}

static bool slow_match(struct slow *s, size_t i, size_t at)
{
	struct instruction in = s->program->code.p[i];
	size_t old;

	if (s->tried[i][at]++)
		return false;
	switch (in.op) {
	case OP_SET:
		return at < s->text.n && slow_has(s, in.x, at) && slow_match(s, i + 1, at + 1);
	case OP_SPLIT:
		return slow_match(s, (size_t)((int64_t)i + in.x), at) ||
		       slow_match(s, (size_t)((int64_t)i + in.y), at);
	case OP_JUMP:
		return slow_match(s, (size_t)((int64_t)i + in.x), at);
	case OP_SAVE:
		old = s->slots[in.x];
		s->slots[in.x] = at;
		if (slow_match(s, i + 1, at))
			return true;
		s->slots[in.x] = old;
		return false;
	case OP_ASSERT:
		return slow_holds(s, in.x, at) && slow_match(s, i + 1, at);
	default:
		return at == s->text.n;
	}
}

/* A random expression of this depth. */
static void put_pattern(struct buf *out, int depth)
{
	static const char *const atoms[] = {"a", "b", "c", ".", "[ab]",   "[^a]", "\\b", "^",
					    "$", "",  "a", "b", "(?m:^)", "\n",   "\\B"};
	static const char *const quantifiers[] = {"*",  "+",   "?",     "*?",    "+?",
						  "??", "{2}", "{0,2}", "{1,}?", ""};

	for (int n = 1 + rand() % 3; n > 0; n--) {
		if (depth > 0 && rand() % 2) {
			buf_str_append(out, rand() % 3 ? STR("(") : STR("(?:"));
			put_pattern(out, depth - 1);
			if (rand() % 2) {
				buf_putc(out, '|');
				put_pattern(out, depth - 1);
			}
			buf_putc(out, ')');
		} else {
			const char *atom = atoms[(size_t)rand() % (sizeof(atoms) / sizeof(*atoms))];

			buf_str_append(out, str_of(*atom ? atom : "(?:)"));
		}
		buf_str_append(out, str_of(quantifiers[(size_t)rand() % 10]));
	}
}

static void expect_agreement(struct str regex, const struct program *program, struct pattern *p,
			     struct str text)
{
	struct slow *slow = calloc(1, sizeof(*slow));
	struct match match;
	bool fits;

	expect(slow != NULL);
	slow->program = program;
	slow->text = text;
	memset(slow->slots, 0xff, sizeof(slow->slots));
	fits = slow_match(slow, 0, 0);
	expect_eq(pattern_test(p, text), fits);
	if (pattern_match(p, text, &match) != fits)
		test_fail(__FILE__, __LINE__, "%.*s on %.*s: not %d", STR_FMT(regex), STR_FMT(text),
			  fits);
	for (uint32_t g = 1; fits && g < match.n_groups; g++) {
		struct str got = match.groups[g];
		size_t from = slow->slots[2 * g], to = slow->slots[2 * g + 1];

		if (got.p ? from != (size_t)(got.p - text.p) || to - from != got.n
			  : from != SIZE_MAX)
			test_fail(__FILE__, __LINE__, "%.*s on %.*s: group %u is %.*s",
				  STR_FMT(regex), STR_FMT(text), g, STR_FMT(got));
	}
	free(slow);
}

/* Over random expressions and texts, engine and definition agree on whether it matches and on every
 * group. */
TEST(agrees_with_the_definition)
{
	unsigned int rounds = 0;

	srand(11);
	while (rounds < 4000) {
		struct buf regex = BUF_NULL;
		struct program program;
		struct pattern *p = NULL;

		put_pattern(&regex, 3);
		expect_eq(program_parse(buf_str(&regex), &program, NULL), 0);
		if (program.code.n <= 512 && program.n_groups <= SLOTS / 2) {
			rounds++;
			expect_eq(pattern_compile(buf_str(&regex), &p, NULL), 0);
			for (int i = 0; i < 12; i++) {
				char text[12];
				size_t n = (size_t)rand() % 10;

				for (size_t k = 0; k < n; k++)
					text[k] = "abc\n"[rand() % 4];
				expect_agreement(buf_str(&regex), &program, p,
						 (struct str){text, n});
			}
		}
		pattern_free(p);
		program_free(&program);
		buf_free(&regex);
	}
}

/* Any bytes as a pattern are compiled or refused with a text, and a compiled one reads no byte
 * beyond the text. */
TEST(any_bytes)
{
	static const char alphabet[] = "ab.*+?()|\\[]{}^$:-,<>PQEdpLxi0123\x80\xc3\xa9\0";
	const char *runs = getenv("ANDIRON_FUZZ_RUNS");

	srand(5);
	for (long round = runs ? strtol(runs, NULL, 10) : 40000; round > 0; round--) {
		char regex[24], *text = malloc(6);
		size_t n = (size_t)rand() % sizeof(regex);
		struct error err = ERROR_NULL;
		struct pattern *p = NULL;
		struct match match;

		expect(text != NULL);
		for (size_t i = 0; i < n; i++)
			regex[i] = alphabet[(size_t)rand() % (sizeof(alphabet) - 1)];
		for (size_t i = 0; i < 6; i++)
			text[i] = alphabet[(size_t)rand() % (sizeof(alphabet) - 1)];
		if (pattern_compile((struct str){regex, n}, &p, &err))
			expect(err.code < 0 && err.text[0]);
		else
			expect(pattern_match(p, (struct str){text, 6}, &match) >= 0);
		pattern_free(p);
		free(text);
	}
}

static int compile(const char *text)
{
	struct pattern *p = NULL;
	int r = pattern_compile(str_of(text), &p, NULL);

	pattern_free(p);
	return r;
}

static void fill(char *text, size_t n, const char *with)
{
	for (size_t i = 0; i < n; i++)
		text[i] = with[i % strlen(with)];
	text[n] = '\0';
}

/* So many different characters, one after the other, the last optional. */
static void fill_characters(char *text, uint32_t n)
{
	struct buf out = BUF_NULL;

	for (uint32_t i = 0; i < n; i++)
		expect_eq(rune_encode(0x4e00 + 2 * i, &out), 0);
	expect_eq(buf_append(&out, "?", 2), 0);
	memcpy(text, out.p, out.n);
	buf_free(&out);
}

/* What multiplies out without end, nests without end or is without end is refused;
 * what is only long is not. */
TEST(bounds)
{
	static char text[70000];

	expect_eq(compile("(a{1000}|b{1000}){1}"), 0);
	expect_eq(compile("(((a{10}){10}){10}){2}"), -EINVAL);
	expect_eq(compile("(a{30}b{30}c{30}d{30}e{30}){33}(a{900}b{900}c{900}d{900}){1}"), 0);
	expect_eq(compile("(a{1}b{1}c{1}d{1}e{1}f{1}g{1}h{1}i{1}j{1}k{1}l{1}m{1}n{1}o{1}p{1}q{1}r{"
			  "1}s{1}t{1}u{1}v{1}w{1}x{1}y{1}z{1}0123456789){1000}"),
		  -E2BIG);
	fill(text, 100, "(");
	expect_eq(compile(text), -EINVAL);
	fill(text, 5000, "(");
	expect_eq(compile(text), -EINVAL);
	fill(text, 20000, "abcdefghi|");
	expect_eq(compile(text), 0);
	fill(text, 69999, "a");
	expect_eq(compile(text), -E2BIG);
	fill_characters(text, 1500);
	expect_eq(compile(text), 0);
	fill_characters(text, 3000);
	expect_eq(compile(text), -E2BIG);
}

/* The longest expressions of what costs most to take in are compiled or refused in little time;
 * that is printed. */
TEST(costly_to_compile)
{
	static const char *const pieces[] = {
		"\\pL",   "[\\pLa]",  "[^a\\pN]", "(?i)[\\pLa]", "(?i)[\\x00-\\x{10ffff}]",
		"a?",     "(?:a|b)*", "(a)",      "a{9}",        "(?i)straße|",
		"\\PL*|", "((",       "[a-z]|",   "(?:(?:",      "[[:^alpha:]]+?"};
	static char text[65000];

	for (size_t i = 0; i < sizeof(pieces) / sizeof(*pieces); i++) {
		int64_t took = clock_mono();
		int r;

		fill(text, (sizeof(text) - 1) / strlen(pieces[i]) * strlen(pieces[i]), pieces[i]);
		r = compile(text);
		took = clock_mono() - took;
		expect(r == 0 || r == -E2BIG || r == -EINVAL);
		printf("# %s …: %d in %lld ms\n", pieces[i], r, (long long)took / 1000000);
	}
}

/* Expressions that make a backtracking engine run for ever take time in proportion to the text: ten
 * times the text is not a hundred times the time. */
TEST(linear)
{
	static const char *const slow_ones[] = {"(a+)+b",
						"(a|aa)+b",
						"(.*)(.*)(.*)(.*)b",
						"(a*)*(a*)*(a*)*c",
						"([a-z]+)*\\d",
						"(?:a?){50}a{50}",
						"(x+x+)+y",
						"^(([a-z])+.)+[A-Z]([a-z])+$"};
	char *text = malloc(1 << 20);

	expect(text != NULL);
	memset(text, 'a', 1 << 20);
	for (size_t i = 0; i < sizeof(slow_ones) / sizeof(*slow_ones); i++) {
		int64_t took[2];
		struct pattern *p = NULL;
		struct match match;

		expect_eq(pattern_compile(str_of(slow_ones[i]), &p, NULL), 0);
		for (size_t k = 0; k < 2; k++) {
			size_t n = k ? 1 << 20 : 1 << 16;
			int64_t began = clock_mono();

			expect_eq(pattern_match(p, (struct str){text, n}, &match), 0);
			text[n - 1] = 'b';
			expect(pattern_match(p, (struct str){text, n}, &match) >= 0);
			text[n - 1] = 'a';
			took[k] = clock_mono() - began;
		}
		printf("# %s: 64 KiB in %lld us, 1 MiB in %lld us\n", slow_ones[i],
		       (long long)took[0] / 1000, (long long)took[1] / 1000);
		pattern_free(p);
	}
	free(text);
}

/* Where a text is longer than what the automaton keeps at once, the groups are still where they
 * are, whatever the segments' borders cut. */
TEST(long_texts)
{
	struct pattern *p = NULL;
	char *text = malloc(100000);

	expect(text != NULL);
	expect_eq(pattern_compile(STR("((?:a|é|\\n)*)(b+?)(b*)([^b]*?)(c(?:.*))"), &p, NULL), 0);
	for (size_t n = 900; n < 60000; n += n / 3 + 1) {
		struct match match;
		size_t at = 0, b;

		while (at < n)
			text[at++] = 'a';
		memcpy(text + at - 2, "é", 2);
		for (b = at; b < at + n / 2; b++)
			text[b] = 'b';
		memcpy(text + b, "zzzcyyc", 7);
		expect_eq(pattern_match(p, (struct str){text, b + 7}, &match), 1);
		expect_eq(match.groups[1].n, n);
		expect_eq(match.groups[2].n, 1);
		expect_eq(match.groups[3].n, n / 2 - 1);
		expect_str(match.groups[4], "zzz");
		expect_str(match.groups[5], "cyyc");
	}
	pattern_free(p);
	free(text);
}

/* More states than are kept: the automaton forgets and goes on, with the same answers. (Which of
 * the last 14 characters were a: 2^14 sets.) */
TEST(many_states)
{
	struct pattern *p = NULL;
	char text[40000];

	srand(4);
	expect_eq(pattern_compile(STR("([ab]{0,13}a)(.*)"), &p, NULL), 0);
	pattern_free(p);
	expect_eq(pattern_compile(STR("(.*)(a[ab]{13})(?:.{5})"), &p, NULL), 0);
	pattern_free(p);
	expect_eq(pattern_compile(STR("[ab]{5}a([ab]{13})((?:a|b)*?)"), &p, NULL), 0);
	pattern_free(p);
	expect_eq(pattern_compile(STR("(?:[ab]{13}a(b)|.)*"), &p, NULL), 0);
	for (int round = 0; round < 3; round++) {
		struct match match;

		for (size_t i = 0; i < sizeof(text); i++)
			text[i] = "ab"[rand() % 2];
		expect_eq(pattern_test(p, (struct str){text, sizeof(text)}), 1);
		expect_eq(pattern_match(p, (struct str){text, sizeof(text)}, &match), 1);
		expect(match.groups[1].n == 1 && match.groups[1].p[0] == 'b');
	}
	pattern_free(p);
}

static int compile_and_match(void *context)
{
	struct pattern *p = NULL;
	struct match match;
	int r = pattern_compile(STR("x(a|bc|)(y.*?)\\bz([[:alpha:]\\pL]+)(?P<n>.)"), &p, NULL);

	if (!r)
		r = pattern_match(p, STR("xbcyyy zabcde"), &match);
	if (r > 0)
		r = pattern_test(p, STR("xbcyyy zabcde")) == 1 ? 0 : -ENOMEM;
	pattern_free(p);
	return r;
}

TEST(out_of_memory)
{
	test_each_failing_allocation(compile_and_match, NULL);
}

static int match_again(void *context)
{
	static char text[5000];
	struct pattern *p = NULL;
	struct match match;
	int r = pattern_compile(STR("((?:a|b)*?)(b?[ab]{3})(c*)"), &p, NULL);

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = i < 4000 ? "aab"[i % 3] : 'c';
	for (int round = 0; !r && round < 2; round++) {
		r = pattern_match(p, (struct str){text, sizeof(text)}, &match);
		if (r > 0)
			r = match.groups[1].n == 3997 && match.groups[3].n == 1000 ? 0 : -EPROTO;
		/* What failed once works when there is memory again. */
		if (r == -ENOMEM && pattern_test(p, STR("aabc")) == 0)
			r = -EPROTO;
	}
	pattern_free(p);
	return r;
}

/* Wherever memory is short in the middle of a long text, the next match is right. */
TEST(out_of_memory_in_long_texts)
{
	test_each_failing_allocation(match_again, NULL);
}

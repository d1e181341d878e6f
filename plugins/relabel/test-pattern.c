/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unit tests of the pattern engine. A second matcher, slow and plain, decides
 * what is right: it backtracks over the pattern's text as leftmost-first,
 * greedy matching is defined.
 */
#include "base/buf.h"
#include "base/test.h"
#include "pattern.h"

#include <errno.h>
#include <stdlib.h>

/* Patterns for the slow matcher are lists of tokens, so that it shares no
 * parsing with the engine: 'a'…: itself, '*': .*, '+': .+, '(' and ')': a group. */
struct slow {
	const char *pattern;
	struct str text;
	size_t open[PATTERN_GROUPS], close[PATTERN_GROUPS];
	unsigned int n_groups, stack[PATTERN_GROUPS], depth;
};

static bool slow_match(struct slow *s, size_t i, size_t at)
{
	char c = s->pattern[i];

	if (!c)
		return at == s->text.n;
	if (c == '*' || c == '+') {
		for (size_t n = s->text.n - at + 1; n-- > (c == '+');) {
			struct slow before = *s;

			if (slow_match(s, i + 1, at + n))
				return true;
			*s = before;
		}
		return false;
	}
	if (c == '(') {
		unsigned int group = ++s->n_groups;

		s->stack[s->depth++] = group;
		s->open[group] = at;
		return slow_match(s, i + 1, at);
	}
	if (c == ')') {
		s->close[s->stack[--s->depth]] = at;
		return slow_match(s, i + 1, at);
	}
	return at < s->text.n && s->text.p[at] == c && slow_match(s, i + 1, at + 1);
}

/* A random pattern of tokens, brackets balanced, and its spelling as a regex. */
static void make_pattern(char tokens[32], struct buf *regex)
{
	unsigned int depth = 0, groups = 0;
	size_t n = 0;

	buf_clear(regex);
	for (int i = 1 + rand() % 9; i > 0; i--) {
		static const char choices[] = "ab*+(b)a*";
		char c = choices[(size_t)rand() % (sizeof(choices) - 1)];

		if ((c == '(' && ++groups > 4) || (c == ')' && !depth))
			continue;
		depth += c == '(';
		depth -= c == ')';
		tokens[n++] = c;
	}
	while (depth--)
		tokens[n++] = ')';
	tokens[n] = 0;
	for (size_t i = 0; i < n; i++) {
		if (tokens[i] == '*' || tokens[i] == '+')
			buf_putc(regex, '.');
		buf_putc(regex, tokens[i]);
	}
	expect(!regex->failed);
}

/* Over random patterns and texts, engine and definition agree on whether it
 * matches and on every group. */
TEST(agrees_with_the_definition)
{
	struct buf regex = BUF_NULL;
	size_t matched = 0;

	srand(11);
	for (int round = 0; round < 30000; round++) {
		struct slow slow = {0};
		struct pattern *p = NULL;
		struct match match = {0};
		char tokens[32], text[12];
		size_t n = (size_t)rand() % 9;
		bool fits;

		make_pattern(tokens, &regex);
		for (size_t i = 0; i < n; i++)
			text[i] = "abc"[rand() % 3];
		slow.pattern = tokens;
		slow.text = (struct str){text, n};
		expect_eq(pattern_compile(buf_str(&regex), &p, NULL), 0);
		fits = pattern_match(p, slow.text, &match);
		if (fits != slow_match(&slow, 0, 0))
			test_fail(__FILE__, __LINE__, "%.*s on %.*s: %d", STR_FMT(buf_str(&regex)),
				  STR_FMT(slow.text), fits);
		matched += fits;
		for (unsigned int g = 1; fits && g <= slow.n_groups; g++) {
			struct str want = str_first(str_skip(slow.text, slow.open[g]),
						    slow.close[g] - slow.open[g]);

			if (!str_eq(match.groups[g], want))
				test_fail(__FILE__, __LINE__, "%.*s on %.*s: group %u is %.*s",
					  STR_FMT(buf_str(&regex)), STR_FMT(slow.text), g,
					  STR_FMT(match.groups[g]));
		}
		pattern_free(p);
	}
	buf_free(&regex);
	expect(matched > 3000);
}

/* Any bytes as a pattern are compiled or refused with a text, and a compiled
 * one reads no byte beyond the text. */
TEST(any_bytes)
{
	static const char alphabet[] = "ab.*+?()|\\[]{}^$:-\x80\xc3\xa9\0";

	srand(5);
	for (int round = 0; round < 30000; round++) {
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
			pattern_match(p, (struct str){text, 6}, &match);
		pattern_free(p);
		free(text);
	}
}

/* What multiplies out without end is refused, not computed. */
TEST(bounds)
{
	struct error err = ERROR_NULL;
	struct pattern *p = NULL;
	char deep[5000];

	expect_eq(pattern_compile(STR("(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)"), &p, &err), 0);
	pattern_free(p);
	expect_eq(pattern_compile(STR("(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)(a|b)"), &p, &err),
		  -E2BIG);
	memset(deep, '(', sizeof(deep));
	expect_eq(pattern_compile((struct str){deep, 100}, &p, &err), -ENOTSUP);
	expect_eq(pattern_compile((struct str){deep, sizeof(deep)}, &p, &err), -E2BIG);
	memset(deep, '.', sizeof(deep));
	for (size_t i = 1; i < 100; i += 2)
		deep[i] = '*';
	expect_eq(pattern_compile((struct str){deep, 100}, &p, &err), -E2BIG);
}

static int compile_once(void *context)
{
	struct pattern *p = NULL;
	int r = pattern_compile(STR("x(a|bc|)(y.*)z(.+)"), &p, NULL);

	pattern_free(p);
	return r;
}

TEST(out_of_memory)
{
	test_each_failing_allocation(compile_once, NULL);
}

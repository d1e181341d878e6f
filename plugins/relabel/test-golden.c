/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the cases of tests/golden/relabel.txt, whose head describes its format. */
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/test.h"
#include "rule.h"

#include <errno.h>
#include <fcntl.h>

#define SOURCES_MAX 8

struct golden {
	struct str name;
	struct arena arena;
	VEC(struct rule *) rules;
	VEC(struct target_label) in, out;
	struct error err;
	bool failed;
	unsigned int n_checked;
};

/* Cuts NAME="value" off the front; the value is unescaped into the arena. */
static struct target_label cut_pair(struct golden *g, struct str *rest)
{
	struct target_label pair = {.name = str_trim(str_cut(rest, '='))};
	char *value = arena_alloc(&g->arena, rest->n + 1);
	size_t i = 1, n = 0;

	expect(value && rest->n >= 2 && rest->p[0] == '"');
	for (; i < rest->n && rest->p[i] != '"'; i++) {
		if (rest->p[i] == '\\' && i + 1 < rest->n)
			value[n++] = rest->p[++i] == 'n' ? '\n' : rest->p[i];
		else
			value[n++] = rest->p[i];
	}
	expect(i < rest->n);
	*rest = str_trim(str_skip(*rest, i + 1));
	pair.value = (struct str){value, n};
	return pair;
}

static void set_option(struct rule_config *c, struct target_label pair, struct str *sources)
{
	uint64_t number = 0;

	if (str_is(pair.name, "source_labels")) {
		c->has_source_labels = true;
		while (pair.value.n) {
			expect(c->n_source_labels < SOURCES_MAX);
			sources[c->n_source_labels++] = str_cut(&pair.value, ',');
		}
	} else if (str_is(pair.name, "modulus")) {
		expect(str_u64(pair.value, &number) && number <= INT64_MAX);
		c->modulus = (int64_t)number;
	} else if (str_is(pair.name, "action")) {
		c->action = pair.value;
	} else if (str_is(pair.name, "separator")) {
		c->separator = pair.value;
	} else if (str_is(pair.name, "regex")) {
		c->regex = pair.value;
	} else if (str_is(pair.name, "target_label")) {
		c->target_label = pair.value;
	} else {
		expect(str_is(pair.name, "replacement"));
		c->replacement = pair.value;
	}
}

static void add_rule(struct golden *g, struct str rest)
{
	struct str sources[SOURCES_MAX];
	struct rule_config c = {.action = STR("replace"),
				.source_labels = sources,
				.separator = STR(RULE_SEPARATOR),
				.regex = STR(RULE_REGEX),
				.target_label = STR(""),
				.replacement = STR(RULE_REPLACEMENT)};
	const char *option;
	struct rule *rule;

	while (rest.n)
		set_option(&c, cut_pair(g, &rest), sources);
	if (rule_compile(&c, &rule, &g->err, &option))
		g->failed = true;
	else
		expect(vec_push(&g->rules, rule));
}

static void add_labels(struct golden *g, struct str rest, bool in)
{
	while (rest.n) {
		struct target_label pair = cut_pair(g, &rest);

		expect(in ? vec_push(&g->in, pair) : vec_push(&g->out, pair));
	}
}

static _Noreturn void fail(const struct golden *g, const char *what, struct str detail)
{
	test_fail(GOLDEN, 0, "%.*s: %s %.*s", STR_FMT(g->name), what, STR_FMT(detail));
}

static int apply(const struct golden *g, struct labels *labels)
{
	int r = RULE_KEPT;

	if (g->failed)
		fail(g, "a rule is refused:", str_of(g->err.text));
	expect_eq(labels_begin(labels, g->in.p, g->in.n), 0);
	for (size_t i = 0; r == RULE_KEPT && i < g->rules.n; i++)
		r = rule_apply(g->rules.p[i], labels);
	expect(r == RULE_KEPT || r == RULE_DROPPED);
	return r;
}

static void expect_out(struct golden *g)
{
	struct labels labels = LABELS_NULL;

	if (apply(g, &labels) == RULE_DROPPED)
		fail(g, "was dropped", STR_NULL);
	vec_each (&g->out, want) {
		struct str got = labels_get(&labels, want->name);

		if (!str_eq(got, want->value))
			fail(g, "another value:", got);
	}
	if (labels.entries.n != g->out.n)
		fail(g, "another number of labels", STR_NULL);
	labels_free(&labels);
}

static void expect_dropped(struct golden *g)
{
	struct labels labels = LABELS_NULL;

	if (apply(g, &labels) != RULE_DROPPED)
		fail(g, "was kept", STR_NULL);
	labels_free(&labels);
}

static void expect_error(struct golden *g, struct str part)
{
	struct str text = str_of(g->err.text);

	if (!g->failed)
		fail(g, "is accepted", STR_NULL);
	if (str_search(text, part) == text.n)
		fail(g, "another error:", text);
}

static void finish(struct golden *g)
{
	vec_each (&g->rules, rule)
		rule_free(*rule);
	vec_free(&g->rules);
	vec_free(&g->in);
	vec_free(&g->out);
	arena_free(&g->arena);
	*g = (struct golden){.n_checked = g->n_checked};
}

static void run_line(struct golden *g, struct str line)
{
	struct str rest = line, verb = str_cut(&rest, ' ');

	if (str_is(verb, "==")) {
		finish(g);
		g->name = rest;
	} else if (str_is(verb, "rule")) {
		add_rule(g, rest);
	} else if (str_is(verb, "in")) {
		add_labels(g, rest, true);
	} else {
		g->n_checked++;
		if (str_is(verb, "out")) {
			add_labels(g, rest, false);
			expect_out(g);
		} else if (str_is(verb, "dropped")) {
			expect_dropped(g);
		} else if (str_is(verb, "error")) {
			expect_error(g, rest);
		} else {
			fail(g, "what is", line);
		}
	}
}

/* Every case of the table holds. */
TEST(golden)
{
	_cleanup_(buf_free) struct buf text = BUF_NULL;
	struct golden g = {.n_checked = 0};
	struct str rest;

	expect_eq(file_read(AT_FDCWD, GOLDEN, &text, 1 << 20), 0);
	for (rest = buf_str(&text); rest.n;) {
		struct str line = str_cut(&rest, '\n');

		if (line.n && line.p[0] != '#')
			run_line(&g, line);
	}
	finish(&g);
	printf("# %u cases\n", g.n_checked);
	expect(g.n_checked > 60);
}

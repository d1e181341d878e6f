/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in answers.h. */
#include "answers.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>

#define SOURCES_MAX          16
#define LABELS_MAX_OF_A_CASE 128

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 0;
}

/* The text in quotes at the front of *rest. */
static bool cut_quoted(struct arena *arena, struct str *rest, struct str *ret)
{
	char *value = arena_alloc(arena, rest->n + 1);
	size_t i = 1, n = 0;

	if (!value || !rest->n || rest->p[0] != '"')
		return false;
	for (; i < rest->n && rest->p[i] != '"'; i++) {
		char c = rest->p[i];

		if (c == '\\' && i + 3 < rest->n && rest->p[i + 1] == 'x') {
			c = (char)(digit_of(rest->p[i + 2]) * 16 + digit_of(rest->p[i + 3]));
			i += 3;
		} else if (c == '\\' && i + 1 < rest->n) {
			c = rest->p[++i] == 'n' ? '\n' : rest->p[i];
		}
		value[n++] = c;
	}
	if (i >= rest->n)
		return false;
	*rest = str_trim(str_skip(*rest, i + 1));
	*ret = (struct str){value, n};
	return true;
}

static void put_quoted(struct buf *out, struct str s)
{
	buf_putc(out, '"');
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c == '"' || c == '\\')
			buf_printf(out, "\\%c", c);
		else if (c < 0x20 || c > 0x7e)
			buf_printf(out, "\\x%02x", c);
		else
			buf_putc(out, (char)c);
	}
	buf_putc(out, '"');
}

/* A name, plain or quoted, up to "=", and a quoted value. */
static bool cut_pair(struct arena *arena, struct str *rest, struct target_label *ret)
{
	if (rest->n && rest->p[0] == '"') {
		if (!cut_quoted(arena, rest, &ret->name) || !rest->n || rest->p[0] != '=')
			return false;
		*rest = str_skip(*rest, 1);
	} else {
		ret->name = arena_str(arena, str_trim(str_cut(rest, '=')));
	}
	return ret->name.p && cut_quoted(arena, rest, &ret->value);
}

static int by_name(const void *left, const void *right)
{
	const struct target_label *a = left, *b = right;

	return str_cmp(a->name, b->name);
}

bool answers_labels(struct arena *arena, struct str rest, struct answer_labels *ret)
{
	ret->p = arena_array(arena, struct target_label, LABELS_MAX_OF_A_CASE);
	ret->n = 0;
	while (ret->p && rest.n && ret->n < LABELS_MAX_OF_A_CASE) {
		if (!cut_pair(arena, &rest, &ret->p[ret->n]))
			return false;
		ret->n += ret->p[ret->n].value.n > 0; /* a target has no empty labels */
	}
	if (!ret->p || rest.n)
		return false;
	qsort(ret->p, ret->n, sizeof(*ret->p), by_name);
	return true;
}

static bool set_option(struct rule_config *c, struct target_label pair, struct str *sources)
{
	const struct {
		const char *name;
		struct str *text;
	} texts[] = {{"action", &c->action},
		     {"separator", &c->separator},
		     {"regex", &c->regex},
		     {"target_label", &c->target_label},
		     {"replacement", &c->replacement}};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		if (str_is(pair.name, texts[i].name)) {
			*texts[i].text = pair.value;
			return true;
		}
	}
	if (str_is(pair.name, "source_labels")) {
		c->has_source_labels = true;
		while (pair.value.n && c->n_source_labels < SOURCES_MAX)
			sources[c->n_source_labels++] = str_cut(&pair.value, ',');
		return !pair.value.n;
	}
	return str_is(pair.name, "modulus") && str_u64(pair.value, &c->modulus);
}

static bool add_rule(struct answers *a, struct str rest)
{
	struct str sources[SOURCES_MAX];
	struct rule_config c = {.action = STR("replace"),
				.source_labels = sources,
				.separator = STR(RULE_SEPARATOR),
				.regex = STR(RULE_REGEX),
				.target_label = STR(""),
				.replacement = STR(RULE_REPLACEMENT)};
	struct target_label pair;
	const char *option;
	struct rule *rule = NULL;

	while (rest.n)
		if (!cut_pair(&a->arena, &rest, &pair) || !set_option(&c, pair, sources))
			return false;
	if (a->failed)
		return true;
	a->failed = rule_compile(&c, &rule, &a->err, &option) != 0;
	return a->failed || vec_push(&a->rules, rule);
}

static void answer_labels(struct answers *a, struct labels *labels, struct buf *out)
{
	struct target_label *all =
		arena_array(&a->arena, struct target_label, labels->entries.n + 1);
	size_t n = 0;

	if (!all)
		return;
	vec_each (&labels->entries, entry)
		all[n++] = entry->label;
	qsort(all, n, sizeof(*all), by_name);
	buf_str_append(out, STR("out"));
	for (size_t i = 0; i < n; i++) {
		buf_putc(out, ' ');
		put_quoted(out, all[i].name);
		buf_putc(out, '=');
		put_quoted(out, all[i].value);
	}
	buf_putc(out, '\n');
}

static void put_error(struct answers *a, struct buf *out)
{
	buf_printf(out, "error %s\n", a->err.text);
}

static bool answer_in(struct answers *a, struct str rest, struct buf *out)
{
	struct labels labels = LABELS_NULL;
	struct answer_labels in;
	int r = RULE_KEPT;

	if (!answers_labels(&a->arena, rest, &in))
		return false;
	if (a->failed) {
		put_error(a, out);
		return true;
	}
	r = labels_begin(&labels, in.p, in.n);
	for (size_t i = 0; r == RULE_KEPT && i < a->rules.n; i++) {
		r = rule_apply(a->rules.p[i], &labels);
		if (r == RULE_DROPPED)
			buf_printf(out, "dropped %zu\n", i + 1);
	}
	if (r == RULE_KEPT)
		answer_labels(a, &labels, out);
	else if (r != RULE_DROPPED)
		buf_printf(out, "failed %d\n", r);
	labels_free(&labels);
	return true;
}

static bool set_pattern(struct answers *a, struct str rest)
{
	struct str text;

	a->err = ERROR_NULL;
	pattern_free(a->pattern);
	a->pattern = NULL;
	if (!cut_quoted(&a->arena, &rest, &text))
		return false;
	a->failed = pattern_compile(text, &a->pattern, &a->err) != 0;
	return true;
}

static bool answer_text(struct answers *a, struct str rest, struct buf *out)
{
	struct match match;
	struct str text;
	int r;

	if (!cut_quoted(&a->arena, &rest, &text))
		return false;
	if (a->failed) {
		put_error(a, out);
		return true;
	}
	r = pattern_match(a->pattern, text, &match);
	if (r != pattern_test(a->pattern, text))
		r = -EPROTO; /* the two must never differ */
	if (r == 1) {
		buf_str_append(out, STR("groups"));
		for (uint32_t i = 0; i < match.n_groups; i++) {
			struct str g = match.groups[i];

			if (g.p)
				buf_printf(out, " %td-%td", g.p - text.p,
					   g.p - text.p + (ptrdiff_t)g.n);
			else
				buf_str_append(out, STR(" -"));
		}
		buf_putc(out, '\n');
	} else if (r == 0) {
		buf_str_append(out, STR("none\n"));
	} else {
		buf_printf(out, "failed %d\n", r);
	}
	return true;
}

static void forget(struct answers *a)
{
	vec_each (&a->rules, rule)
		rule_free(*rule);
	a->rules.n = 0;
	pattern_free(a->pattern);
	a->pattern = NULL;
	arena_free(&a->arena);
	a->arena = ARENA_NULL;
	a->err = ERROR_NULL;
	a->failed = false;
}

void answers_free(struct answers *a)
{
	forget(a);
	vec_free(&a->rules);
}

bool answers_take(struct answers *a, struct str line, struct buf *out)
{
	static const char *const answers[] = {"out",    "dropped", "error",
					      "groups", "none",    "failed"};
	struct str rest = line, verb = str_cut(&rest, ' ');
	bool good = true;

	for (size_t i = 0; i < sizeof(answers) / sizeof(*answers); i++)
		if (str_is(verb, answers[i]))
			return true;
	if (str_is(verb, "=="))
		forget(a);
	else if (str_is(verb, "rule"))
		good = add_rule(a, rest);
	else if (str_is(verb, "in"))
		good = answer_in(a, rest, out);
	else if (str_is(verb, "regex"))
		good = set_pattern(a, rest);
	else if (str_is(verb, "text"))
		good = answer_text(a, rest, out);
	else
		good = !line.n || line.p[0] == '#';
	return good && !out->failed;
}

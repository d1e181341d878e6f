/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a rule and compiles it. What is refused is what Alloy refuses, so that a file that is
 * right here is right there. */
#include "relabel/rule-private.h"

#include "base/check.h"
#include "base/cleanup.h"

#include <errno.h>

const char *const rule_actions[N_ACTIONS + 1] = {
	[REPLACE] = "replace",     [KEEP] = "keep",           [DROP] = "drop",
	[HASHMOD] = "hashmod",     [LABELMAP] = "labelmap",   [LABELDROP] = "labeldrop",
	[LABELKEEP] = "labelkeep", [LOWERCASE] = "lowercase", [UPPERCASE] = "uppercase",
	[KEEPEQUAL] = "keepequal", [DROPEQUAL] = "dropequal",
};

/* What each action makes of the options. */
#define WANTS_TARGET      1u /* target_label must be given */
#define PLAIN_REPLACEMENT 2u /* replacement has no meaning */
#define ONLY_EQUALITY     4u /* source_labels and target_label only */
#define ONLY_REGEX        8u

static const unsigned int action_flags[N_ACTIONS] = {
	[REPLACE] = WANTS_TARGET,
	[HASHMOD] = WANTS_TARGET,
	[LABELDROP] = ONLY_REGEX,
	[LABELKEEP] = ONLY_REGEX,
	[LOWERCASE] = WANTS_TARGET | PLAIN_REPLACEMENT,
	[UPPERCASE] = WANTS_TARGET | PLAIN_REPLACEMENT,
	[KEEPEQUAL] = WANTS_TARGET | PLAIN_REPLACEMENT | ONLY_EQUALITY,
	[DROPEQUAL] = WANTS_TARGET | PLAIN_REPLACEMENT | ONLY_EQUALITY,
};

/* Where the first finding goes. */
struct finding {
	struct error *err;
	const char **ret_option;
};

#define FIND(f, option, ...)                                                                       \
	(*(f)->ret_option = (option), error_set((f)->err, -EINVAL, __VA_ARGS__))

static int find_action(struct str name, const struct finding *f, enum action *ret)
{
	for (unsigned int i = 0; i < N_ACTIONS; i++) {
		if (!str_is(name, rule_actions[i]))
			continue;
		*ret = (enum action)i;
		return 0;
	}
	return FIND(f, "action", "\"%.*s\" is no relabeling action", STR_FMT(name));
}

static int check_target(const struct rule_config *c, enum action action, const struct finding *f)
{
	unsigned int flags = action_flags[action];
	struct str target = c->target_label;

	if (!(flags & WANTS_TARGET))
		return 0;
	if (!target.n)
		return FIND(f, NULL, "the action %s needs a target_label", rule_actions[action]);
	if (!label_name_valid(target))
		return FIND(f, "target_label",
			    "the target_label for the action %s is no valid name: it is not UTF-8",
			    rule_actions[action]);
	return 0;
}

/* An option other than regex that differs from its default, or NULL. */
static const char *extra_option(const struct rule_config *c)
{
	if (c->has_source_labels)
		return "source_labels";
	if (c->target_label.n)
		return "target_label";
	if (c->modulus)
		return "modulus";
	if (!str_is(c->separator, RULE_SEPARATOR))
		return "separator";
	return str_is(c->replacement, RULE_REPLACEMENT) ? NULL : "replacement";
}

static const char *unequal_option(const struct rule_config *c)
{
	if (!str_is(c->regex, RULE_REGEX))
		return "regex";
	if (c->modulus)
		return "modulus";
	return str_is(c->separator, RULE_SEPARATOR) ? NULL : "separator";
}

static int check_extras(const struct rule_config *c, enum action action, const struct finding *f)
{
	unsigned int flags = action_flags[action];
	const char *extra = NULL;

	if (flags & ONLY_REGEX)
		extra = extra_option(c);
	else if (flags & ONLY_EQUALITY)
		extra = unequal_option(c);
	if (extra)
		return FIND(f, extra, "the action %s takes only %s, not %s", rule_actions[action],
			    flags & ONLY_REGEX ? "regex" : "source_labels and target_label", extra);
	if ((flags & PLAIN_REPLACEMENT) && !str_is(c->replacement, RULE_REPLACEMENT))
		return FIND(f, "replacement", "the action %s takes no replacement",
			    rule_actions[action]);
	return 0;
}

static int check_rule(const struct rule_config *c, enum action action, const struct finding *f)
{
	int r = check_target(c, action, f);

	if (!r)
		r = check_extras(c, action, f);
	if (r)
		return r;
	if (action == HASHMOD && c->modulus == 0)
		return FIND(f, NULL, "the action hashmod needs a modulus greater than 0");
	if (action == LABELMAP && !label_name_valid(c->replacement))
		return FIND(
			f, "replacement",
			"the replacement for the action labelmap, which makes names of it, is %s",
			c->replacement.n ? "not UTF-8" : "empty");
	return 0;
}

static int copy_texts(const struct rule_config *c, struct rule *rule)
{
	struct str *labels = arena_array(&rule->text, struct str, c->n_source_labels + 1);
	uint64_t *keys = arena_array(&rule->text, uint64_t, c->n_source_labels + 1);

	if (!labels || !keys)
		return -ENOMEM;
	for (size_t i = 0; i < c->n_source_labels; i++) {
		labels[i] = arena_str(&rule->text, c->source_labels[i]);
		if (!labels[i].p)
			return -ENOMEM;
		keys[i] = label_key(labels[i]);
	}
	rule->source_keys = keys;
	rule->source_labels = labels;
	rule->n_source_labels = c->n_source_labels;
	rule->separator = arena_str(&rule->text, c->separator);
	rule->target_label = arena_str(&rule->text, c->target_label);
	rule->replacement = arena_str(&rule->text, c->replacement);
	rule->plain_target = str_find(c->target_label, '$') == c->target_label.n &&
			     label_name_valid(c->target_label);
	rule->plain_replacement = str_find(c->replacement, '$') == c->replacement.n;
	rule->first_group = str_is(c->replacement, "$1") || str_is(c->replacement, "${1}");
	return rule->separator.p && rule->target_label.p && rule->replacement.p ? 0 : -ENOMEM;
}

void rule_free(struct rule *rule)
{
	if (!rule)
		return;
	pattern_free(rule->pattern);
	arena_free(&rule->text);
	free(rule);
}
DEFINE_CLEANUP(struct rule *, rule_free);

int rule_set_place(struct rule *rule, const char *file, uint32_t line)
{
	struct str copy = arena_str(&rule->text, str_of(file));

	if (!copy.p)
		return -ENOMEM;
	rule->file = file ? copy.p : NULL;
	rule->line = line;
	return 0;
}

const char *rule_file(const struct rule *rule)
{
	return rule->file;
}

uint32_t rule_line(const struct rule *rule)
{
	return rule->line;
}

int rule_compile(const struct rule_config *config, struct rule **ret, struct error *err,
		 const char **ret_option)
{
	_cleanup_(rule_freep) struct rule *rule = calloc(1, sizeof(*rule));
	const struct finding f = {err, ret_option};
	int r;

	*ret_option = NULL;
	if (!rule)
		return -ENOMEM;
	r = find_action(config->action, &f, &rule->action);
	if (!r)
		r = check_rule(config, rule->action, &f);
	if (!r)
		r = copy_texts(config, rule);
	if (r)
		return r;
	check(rule->action < N_ACTIONS);
	rule->modulus = config->modulus;
	*ret_option = "regex";
	r = pattern_compile(config->regex, &rule->pattern, err);
	if (r)
		return r;
	*ret_option = NULL;
	*ret = take_ptr(rule);
	return 0;
}

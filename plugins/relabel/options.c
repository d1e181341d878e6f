/* SPDX-License-Identifier: Apache-2.0 */
/* Options of discovery.relabel: Alloy's names, types and defaults. */
#include "relabel/options.h"

#include "abi/option.h"
#include "relabel/rule.h"

#define QUOTED(text) "\"" text "\""

static const struct andiron_option rule_items[] = {
	OPTION(STRING, "action", QUOTED("replace"),
	       "What the rule does with a target, or a profile.", .choices = rule_actions),
	OPTION(STRINGS, "source_labels", NULL,
	       "Labels whose values, joined by the separator, are what the rule looks at."),
	OPTION(STRING, "separator", QUOTED(RULE_SEPARATOR),
	       "What stands between the values of source_labels."),
	OPTION(STRING, "regex", QUOTED(RULE_REGEX),
	       "What the whole of the joined values, or of a label's name, must match."),
	OPTION(UINT, "modulus", NULL, "For hashmod: the result is the hash modulo this."),
	OPTION(STRING, "target_label", NULL, "The label that the rule writes, or compares with."),
	OPTION(STRING, "replacement", QUOTED(RULE_REPLACEMENT),
	       "What is written; $1 or ${1} stands for what the group matched."),
};

const struct andiron_options rule_block = ANDIRON_OPTIONS(rule_items);

static const struct andiron_option items[] = {
	OPTION(TARGETS, "targets", NULL, "The targets to relabel.",
	       .flags = ANDIRON_OPTION_REQUIRED),
	OPTION(BLOCK, "rule", NULL,
	       "One step; rules work one after the other, each on what the one before left.",
	       .flags = ANDIRON_OPTION_REPEATED, .block = &rule_block),
};

const struct andiron_options relabel_options = ANDIRON_OPTIONS(items);

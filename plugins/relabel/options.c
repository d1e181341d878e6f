/* SPDX-License-Identifier: Apache-2.0 */
/* Options of discovery.relabel: Alloy's names, types and defaults. */
#include "relabel/options.h"

#include "relabel/rule.h"

#define QUOTED(text) "\"" text "\""

static const struct andiron_option rule_items[] = {
	{
		.name = "action",
		.type = ANDIRON_TYPE_STRING,
		.default_text = QUOTED("replace"),
		.doc = "What the rule does with a target.",
		.choices = rule_actions,
	},
	{
		.name = "source_labels",
		.type = ANDIRON_TYPE_STRINGS,
		.doc = "Labels whose values, joined by the separator, are what the rule looks at.",
	},
	{
		.name = "separator",
		.type = ANDIRON_TYPE_STRING,
		.default_text = QUOTED(RULE_SEPARATOR),
		.doc = "What stands between the values of source_labels.",
	},
	{
		.name = "regex",
		.type = ANDIRON_TYPE_STRING,
		.default_text = QUOTED(RULE_REGEX),
		.doc = "What the whole of the joined values, or of a label's name, must match.",
	},
	{
		.name = "modulus",
		.type = ANDIRON_TYPE_UINT,
		.doc = "For hashmod: the result is the hash modulo this.",
	},
	{
		.name = "target_label",
		.type = ANDIRON_TYPE_STRING,
		.doc = "The label that the rule writes, or compares with.",
	},
	{
		.name = "replacement",
		.type = ANDIRON_TYPE_STRING,
		.default_text = QUOTED(RULE_REPLACEMENT),
		.doc = "What is written; $1 or ${1} stands for what the group matched.",
	},
};

static const struct andiron_options rule_block = ANDIRON_OPTIONS(rule_items);

static const struct andiron_option items[] = {
	{
		.name = "targets",
		.type = ANDIRON_TYPE_TARGETS,
		.flags = ANDIRON_OPTION_REQUIRED,
		.doc = "The targets to relabel.",
	},
	{
		.name = "rule",
		.type = ANDIRON_TYPE_BLOCK,
		.flags = ANDIRON_OPTION_REPEATED,
		.doc = "One step; rules work one after the other, each on what the one before left.",
		.block = &rule_block,
	},
};

const struct andiron_options relabel_options = ANDIRON_OPTIONS(items);

/* SPDX-License-Identifier: Apache-2.0 */
/* Rules from the configuration. Contract in relabel.h. */
#include "relabel/relabel.h"

#include "abi/log.h"
#include "abi/value.h"
#include "base/vec.h"

#include <errno.h>

static int sources_from(const struct andiron_value *list, struct str **ret)
{
	struct str *labels;

	if (!list || !list->n_items)
		return 0;
	labels = calloc(list->n_items, sizeof(*labels));
	if (!labels)
		return -ENOMEM;
	for (uint64_t i = 0; i < list->n_items; i++)
		labels[i] = abi_str(list->items[i].string);
	*ret = labels;
	return 0;
}

/* One rule block. On failure *ret_at is the value that is wrong. */
static int rule_from_value(const struct andiron_value *block, struct rule **ret, struct error *err,
			   const struct andiron_value **ret_at)
{
	const struct andiron_value *sources = value_get(block, "source_labels");
	struct rule_config config = {
		.action = value_str(block, "action", STR("replace")),
		.n_source_labels = sources ? sources->n_items : 0,
		.has_source_labels = sources && !(sources->flags & ANDIRON_VALUE_DEFAULTED),
		.separator = value_str(block, "separator", STR(RULE_SEPARATOR)),
		.regex = value_str(block, "regex", STR(RULE_REGEX)),
		.modulus = (uint64_t)value_int(block, "modulus", 0),
		.target_label = value_str(block, "target_label", STR("")),
		.replacement = value_str(block, "replacement", STR(RULE_REPLACEMENT)),
	};
	struct str *labels = NULL;
	const char *option = NULL;
	int r = sources_from(sources, &labels);

	config.source_labels = labels;
	*ret_at = block;
	if (!r)
		r = rule_compile(&config, ret, err, &option);
	if (r && option && value_get(block, option))
		*ret_at = value_get(block, option);
	free(labels);
	if (!r && rule_set_place(*ret, block->file, block->line)) {
		rule_free(*ret);
		*ret = NULL;
		r = -ENOMEM;
	}
	return r;
}

int rules_from_args(const struct andiron_value *args, struct rules *ret, struct error *err)
{
	const struct andiron_value *blocks = value_get(args, "rule");
	struct rules rules = {0};

	for (uint64_t i = 0; blocks && i < blocks->n_items; i++) {
		const struct andiron_value *at;
		struct rule *rule;
		int r = rule_from_value(&blocks->items[i], &rule, err, &at);

		if (r)
			error_wrap(err, r, "rule %llu", (unsigned long long)i + 1);
		if (!r && !vec_push(&rules, rule)) {
			rule_free(rule);
			r = -ENOMEM;
		}
		if (r) {
			rules_free(&rules);
			return r;
		}
	}
	*ret = rules;
	return 0;
}

int32_t rules_check(const struct andiron_host *host, const struct andiron_value *args,
		    struct andiron_report *report)
{
	const struct andiron_value *blocks = value_get(args, "rule");

	for (uint64_t i = 0; blocks && i < blocks->n_items; i++) {
		struct error err = ERROR_NULL;
		const struct andiron_value *at = NULL;
		struct rule *rule = NULL;

		if (rule_from_value(&blocks->items[i], &rule, &err, &at))
			abi_report(host, report, ANDIRON_REPORT_ERROR, at, "%s",
				   err.code ? err.text : "out of memory");
		rule_free(rule);
	}
	return 0;
}

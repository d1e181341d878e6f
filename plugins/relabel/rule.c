/* SPDX-License-Identifier: Apache-2.0 */
/* What a rule does. One function per family of actions; each sees the labels as the rule before
 * left them. */
#include "relabel/rule.h"

#include "relabel/rule-private.h"

#include "base/buf.h"
#include "base/check.h"
#include "regex/unicode.h"
#include "relabel/md5.h"

#include <errno.h>

static struct str get_source(const struct rule *rule, const struct labels *labels, size_t i)
{
	return labels_get_by_key(labels, rule->source_labels[i], rule->source_keys[i]);
}

/* The values of source_labels, joined. */
static int join_sources(const struct rule *rule, const struct labels *labels, struct buf *out)
{
	for (size_t i = 0; i < rule->n_source_labels; i++) {
		if (i)
			buf_str_append(out, rule->separator);
		buf_str_append(out, get_source(rule, labels, i));
	}
	return out->failed ? -ENOMEM : 0;
}

static int expand(const struct match *match, struct str text, struct buf *buf, struct str *ret)
{
	int r;

	buf_clear(buf);
	buf->limit = LABELS_BYTES_MAX;
	r = pattern_expand(match, text, buf);
	*ret = buf_str(buf);
	return r;
}

static int apply_replace(const struct rule *rule, struct labels *labels, struct str value)
{
	struct str target = rule->target_label, result = rule->replacement;
	struct match match;
	int r = pattern_match(rule->pattern, value, &match);

	if (r <= 0)
		return r ? r : RULE_KEPT;
	r = 0;
	if (!rule->plain_target)
		r = expand(&match, rule->target_label, &labels->target, &target);
	if (!r && !rule->plain_target && !label_name_valid(target))
		return RULE_KEPT;
	if (!r && rule->first_group)
		result = match.n_groups > 1 ? match.groups[1] : STR_NULL;
	else if (!r && !rule->plain_replacement)
		r = expand(&match, rule->replacement, &labels->result, &result);
	return r ? r : labels_set(labels, target, result);
}

static int apply_filter(const struct rule *rule, struct labels *labels, struct str value)
{
	bool drops = rule->action == DROP || rule->action == DROPEQUAL;
	int same;

	if (rule->action == KEEP || rule->action == DROP)
		same = pattern_test(rule->pattern, value);
	else
		same = str_eq(value, labels_get(labels, rule->target_label));
	if (same < 0)
		return same;
	return same == drops ? RULE_DROPPED : RULE_KEPT;
}

static int apply_hashmod(const struct rule *rule, struct labels *labels, struct str value)
{
	uint8_t sum[16];
	uint64_t number = 0;
	char text[24];
	int n;

	md5(value, sum);
	for (size_t i = 8; i < 16; i++)
		number = number << 8 | sum[i];
	check(rule->modulus > 0);
	n = snprintf(text, sizeof(text), "%llu", (unsigned long long)(number % rule->modulus));
	return labels_set(labels, rule->target_label, (struct str){text, (size_t)n});
}

static int apply_case(const struct rule *rule, struct labels *labels, struct str value)
{
	struct buf *text = &labels->result;
	int r;

	buf_clear(text);
	text->limit = LABELS_BYTES_MAX;
	r = case_map(value, rule->action == UPPERCASE, text);
	return r ? r : labels_set(labels, rule->target_label, buf_str(text));
}

/* Names and values as they are before the first change: a label that is mapped must not be mapped
 * again. As most names match nothing, what there is is kept only when the first one does. */
static int apply_labelmap(const struct rule *rule, struct labels *labels)
{
	size_t n = labels->entries.n;
	bool kept = false;
	int r = 0;

	for (size_t i = 0; !r && i < n; i++) {
		const struct label_entry *entry = kept ? &labels->before.p[i]
						       : &labels->entries.p[i];
		struct str value = entry->label.value, name;
		struct match match;
		int matches = pattern_match(rule->pattern, entry->label.name, &match);

		if (matches <= 0) {
			r = matches;
			continue;
		}
		if (!kept)
			r = labels_keep(labels);
		kept = true;
		if (!r)
			r = expand(&match, rule->replacement, &labels->result, &name);
		if (!r)
			r = labels_set(labels, name, value);
	}
	return r;
}

static int apply_names(const struct rule *rule, struct labels *labels)
{
	bool remove_matching = rule->action == LABELDROP;

	for (size_t i = labels->entries.n; i-- > 0;) {
		struct str name = labels->entries.p[i].label.name;
		int matches = pattern_test(rule->pattern, name);

		if (matches < 0)
			return matches;
		if (matches == remove_matching)
			labels_remove(labels, name);
	}
	return RULE_KEPT;
}

static int apply_to_value(const struct rule *rule, struct labels *labels, struct str value)
{
	switch (rule->action) {
	case REPLACE:
		return apply_replace(rule, labels, value);
	case HASHMOD:
		return apply_hashmod(rule, labels, value);
	case LOWERCASE:
	case UPPERCASE:
		return apply_case(rule, labels, value);
	case KEEP:
	case DROP:
	case KEEPEQUAL:
	case DROPEQUAL:
		return apply_filter(rule, labels, value);
	case LABELMAP:
	case LABELDROP:
	case LABELKEEP:
	case N_ACTIONS:
		break;
	}
	absurd("an action without a value");
}

int rule_apply(const struct rule *rule, struct labels *labels)
{
	int r;

	if (rule->action == LABELMAP)
		return apply_labelmap(rule, labels);
	if (rule->action == LABELDROP || rule->action == LABELKEEP)
		return apply_names(rule, labels);
	if (rule->n_source_labels == 1) /* nothing to join, nothing to copy */
		return apply_to_value(rule, labels, get_source(rule, labels, 0));
	buf_clear(&labels->joined);
	r = join_sources(rule, labels, &labels->joined);
	return r ? r : apply_to_value(rule, labels, buf_str(&labels->joined));
}

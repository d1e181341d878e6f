/* SPDX-License-Identifier: Apache-2.0 */
/* A relabeling rule: Prometheus' semantics (model/relabel of its version 3, with UTF-8 names) over
 * this folder's patterns. Not for two threads at once, because patterns learn while they match. */
#pragma once

#include "base/error.h"
#include "relabel/labels.h"
#include "regex/pattern.h"

enum action {
	REPLACE,
	KEEP,
	DROP,
	HASHMOD,
	LABELMAP,
	LABELDROP,
	LABELKEEP,
	LOWERCASE,
	UPPERCASE,
	KEEPEQUAL,
	DROPEQUAL,
	N_ACTIONS
};

/* Their names, in this order, and NULL: the option's choices. */
extern const char *const rule_actions[N_ACTIONS + 1];

#define RULE_SEPARATOR   ";"
#define RULE_REGEX       "(.*)"
#define RULE_REPLACEMENT "$1"

/* What the configuration says, defaults filled in. Borrowed. */
struct rule_config {
	struct str action;
	const struct str *source_labels;
	size_t n_source_labels;
	bool has_source_labels; /* given, if only as an empty list */
	struct str separator;
	struct str regex;
	uint64_t modulus; /* 0: not given */
	struct str target_label;
	struct str replacement;
};

struct rule;

/* On failure *ret_option (a constant) names the option that is wrong, NULL if it is the rule as a
 * whole. -EINVAL, -E2BIG, -ENOMEM. */
int rule_compile(const struct rule_config *config, struct rule **ret, struct error *err,
		 const char **ret_option);
void rule_free(struct rule *rule);

/* Where the rule stands in the configuration; copied. 0 or -ENOMEM. NULL and 0 as long as it was
 * not said. */
int rule_set_place(struct rule *rule, const char *file, uint32_t line);
const char *rule_file(const struct rule *rule);
uint32_t rule_line(const struct rule *rule);

#define RULE_KEPT    0
#define RULE_DROPPED 1

/* Works on the labels: KEPT, DROPPED, -E2BIG where they grow beyond what labels.h allows, -ENOMEM.
 * After anything but KEPT the labels are of no use. */
int rule_apply(const struct rule *rule, struct labels *labels);

/* SPDX-License-Identifier: Apache-2.0 */
/* A compiled rule, for rule.c and rule-compile.c only. */
#pragma once

#include "relabel/rule.h"

struct rule {
	enum action action;
	struct arena text; /* holds the strings */
	const struct str *source_labels;
	const uint64_t *source_keys; /* label_key of each */
	size_t n_source_labels;
	struct str separator;
	struct str target_label;
	struct str replacement;
	bool plain_target;      /* means itself: it has no dollar, and is a name */
	bool plain_replacement; /* has no dollar */
	bool first_group;       /* the replacement is the first group */
	uint64_t modulus;
	struct pattern *pattern;
	const char *file; /* where it stands; NULL: not known */
	uint32_t line;
};

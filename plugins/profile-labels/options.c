/* SPDX-License-Identifier: Apache-2.0 */
/* Options of pyroscope.relabel and pyroscope.enrich: Alloy's names, types and defaults. */
#include "profile-labels/options.h"

#include "abi/option.h"
#include "relabel/options.h"

static const struct andiron_option relabel_items[] = {
	OPTION(RECEIVERS, "forward_to", NULL, "Where the profiles go.",
	       .flags = ANDIRON_OPTION_REQUIRED),
	OPTION(BLOCK, "rule", NULL,
	       "One step; rules work one after the other, each on what the one before left.",
	       .flags = ANDIRON_OPTION_REPEATED, .block = &rule_block),
	OPTION(INT, "max_cache_size", "10000",
	       "Taken as Alloy takes it; no results are kept here, so it changes nothing.",
	       .min = 1, .max = INT32_MAX),
};

const struct andiron_options profile_relabel_options = ANDIRON_OPTIONS(relabel_items);

static const struct andiron_option enrich_items[] = {
	OPTION(TARGETS, "targets", NULL, "The targets whose labels profiles get.",
	       .flags = ANDIRON_OPTION_REQUIRED),
	OPTION(RECEIVERS, "forward_to", NULL, "Where the profiles go.",
	       .flags = ANDIRON_OPTION_REQUIRED),
	OPTION(STRING, "target_match_label", NULL, "The label by which a target is found.",
	       .flags = ANDIRON_OPTION_REQUIRED),
	OPTION(STRING, "profiles_match_label", NULL,
	       "The label of a profile whose value is looked for; by default target_match_label."),
	OPTION(STRINGS, "labels_to_copy", NULL,
	       "Which labels a profile gets; by default all that do not begin with \"__\"."),
};

const struct andiron_options enrich_arguments = ANDIRON_OPTIONS(enrich_items);

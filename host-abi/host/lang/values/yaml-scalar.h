/* SPDX-License-Identifier: Apache-2.0 */
/* What a text in YAML means: null, true, a number, a time, or itself; by YAML 1.2's rules with the
 * exceptions of the library that Alloy uses: 017 and 1_000 are numbers, yes and 1:30 are texts, and
 * a date becomes the text of a moment ("2001-01-01T00:00:00Z").
 *
 * Source: yaml.org/spec/1.2, gopkg.in/yaml.v3 as it behaves. */
#pragma once

#include "host/lang/values/eval.h"

#define YAML_TAG "tag:yaml.org,2002:"

struct yaml_scalar {
	struct str text;
	const char *tag; /* as libyaml has it; NULL if there is none */
	bool plain;      /* without quotes, not a block */
};

/* False if the text is none of its tag, with *ret_problem (static); or without memory, with NULL.
 */
bool yaml_scalar_value(struct lang *l, const struct expr *e, const struct yaml_scalar *scalar,
		       struct andiron_value *ret, const char **ret_problem);

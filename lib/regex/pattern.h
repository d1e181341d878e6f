/* SPDX-License-Identifier: Apache-2.0 */
/* The regular expressions of rules: Go's syntax and choice (leftmost-first), in time linear in the
 * text. A pattern is anchored at both ends and its dot matches newlines too, as in Prometheus; so a
 * text matches as a whole or not at all.
 *
 * A pattern remembers what it has learnt while matching, in bounded memory, so it is not for two
 * threads at once. */
#pragma once

#include "base/error.h"
#include "base/str.h"

struct pattern;

/* What the groups matched, slices of the text; STR_NULL where a group took no part. Lives until the
 * pattern's next match. */
struct match {
	const struct pattern *pattern;
	const struct str *groups;
	uint32_t n_groups; /* with group 0, the whole match */
};

/* 0; -EINVAL for what Go refuses, with byte and reason; -E2BIG for what is too large when its
 * repetitions are written out, or tells too many characters apart; -ENOMEM. */
int pattern_compile(struct str text, struct pattern **ret, struct error *err);
void pattern_free(struct pattern *p);

/* 1 if the text matches, 0 if not, -ENOMEM. O(text) for a given pattern. */
int pattern_test(struct pattern *p, struct str text);
int pattern_match(struct pattern *p, struct str text, struct match *ret);

/* Appends `text` with $1, ${1}, ${name} and $$ replaced as Go's Regexp.Expand does:
 * a name is the longest run of letters, digits and underscores, an unknown one
 * gives nothing, and a dollar without a name stands for itself. 0, -ENOMEM or
 * -E2BIG. */
struct buf;
int pattern_expand(const struct match *match, struct str text, struct buf *out);

/* The name of a group, empty where it has none. */
struct str pattern_group_name(const struct pattern *p, uint32_t group);

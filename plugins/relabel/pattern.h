/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The regular expressions of rules, behind the interface that any engine can
 * stand behind. This one matches a subset of Go's syntax exactly, and refuses
 * the rest by name: literals, escaped characters, `.*` and `.+`, groups, and
 * alternatives that no `.*` or `.+` precedes.
 *
 * A pattern is anchored at both ends and its dot matches newlines too, as in
 * Prometheus; so a text matches as a whole or not at all.
 */
#ifndef RELABEL_PATTERN_H
#define RELABEL_PATTERN_H

#include "base/error.h"
#include "base/str.h"

#define PATTERN_GROUPS 16 /* with group 0, the whole match */

struct pattern;

/* What the groups matched, slices of the text; STR_NULL where a group took no
 * part. */
struct match {
	struct str groups[PATTERN_GROUPS];
	uint32_t n_groups;
};

/* 0, -EINVAL for what is no regular expression, -ENOTSUP for what is
 * outside of the subset, -E2BIG, -ENOMEM. */
int pattern_compile(struct str text, struct pattern **ret, struct error *err);
void pattern_free(struct pattern *p);

/* [any]; time is linear in the text for a given pattern. */
bool pattern_match(const struct pattern *p, struct str text, struct match *ret);

/*
 * Appends `text` with $1, ${1} and $$ replaced as Go's Regexp.Expand does: a
 * name is the longest run of letters, digits and underscores, an unknown one
 * gives nothing, and a dollar without a name stands for itself.
 */
struct buf;
int pattern_expand(const struct match *match, struct str text, struct buf *out);

#endif

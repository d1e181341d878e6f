/* SPDX-License-Identifier: Apache-2.0 */
/* Cases as lines of text, and what this engine answers to them; for tests. The form is described at
 * the head of tests/golden/relabel.txt; tests/servers/ prometheus-oracle answers the same lines by
 * Prometheus's own library. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/vec.h"
#include "relabel/rule.h"

struct answers {
	struct arena arena; /* of the case's texts */
	VEC(struct rule *) rules;
	struct pattern *pattern;
	struct error err;
	bool failed;
};

void answers_free(struct answers *a);

/* Takes a line. For one that asks ("in", "text") appends the line that answers it;
 * lines that are answers themselves are passed over. Returns false for a
 * line that is none of these, and when memory is short. */
bool answers_take(struct answers *a, struct str line, struct buf *out);

/* The pairs of an "in" or "out" line, sorted by name; borrowed from the arena. */
struct answer_labels {
	struct target_label *p;
	size_t n;
};
bool answers_labels(struct arena *arena, struct str rest, struct answer_labels *ret);

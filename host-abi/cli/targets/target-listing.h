/* SPDX-License-Identifier: Apache-2.0 */
/* What `andiron targets` has seen: targets and dropped ones by component, and
 * how they are shown. Everything is copied into one arena. */
#ifndef CLI_TARGETS_TARGET_LISTING_H
#define CLI_TARGETS_TARGET_LISTING_H

#include "abi/target-list.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/vec.h"
#include "cli/targets/process-match.h"

#include <andiron/dropped-targets.h>
#include <andiron/value.h>

struct seen_target {
	const struct target_label *labels; /* in their order */
	uint32_t n_labels;
	struct matched matched; /* if it was asked for */
	/* Of a dropped one. */
	uint32_t rule, line; /* 0: none */
	const char *file;
	const char *reason;
};

struct seen_targets {
	struct seen_target *p;
	size_t n, capacity;
};

struct seen_component {
	const char *id;
	struct seen_targets targets, dropped;
};

struct seen {
	struct arena arena;
	VEC(struct seen_component) components;
	bool matches; /* `matched` is filled in */
	bool failed;  /* out of memory */
};

void seen_free(struct seen *s);

/* Begins a component; what follows is its. */
void seen_begin(struct seen *s, const char *id);
void seen_add_row(struct seen *s, const struct target_row *row);
void seen_add_dropped(struct seen *s, const struct andiron_dropped_target *target);
/* Targets that were given: a LIST of MAPs of STRINGs. */
void seen_add_given(struct seen *s, const struct andiron_value *list);

/* Finds the processes of all targets. 0, or why /proc could not be read. */
int seen_match(struct seen *s);

/* As JSON in the shape of docs/targets.md, or for people; `only` NULL: all
 * components. Failures stay in the buffer. */
void seen_json(const struct seen *s, const char *only, struct buf *out);
void seen_text(const struct seen *s, const char *only, struct buf *out);

#endif

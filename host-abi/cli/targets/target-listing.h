/* SPDX-License-Identifier: Apache-2.0 */
/* Targets and dropped targets by component, and how `andiron targets` shows them. Everything is
 * copied into one arena. */
#pragma once

#include "abi/target-list.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/vec.h"
#include "cli/targets/process-match.h"

#include <andiron/dropped-targets.h>
#include <andiron/value.h>

struct listed_target {
	const struct target_label *labels; /* in their order */
	uint32_t n_labels;
	struct matched matched; /* if target_listing_match was called */
	/* Of a dropped target. */
	uint32_t rule, line; /* 0: none */
	const char *file;
	const char *reason;
};

struct listed_targets {
	struct listed_target *p;
	size_t n, capacity;
};

struct listed_component {
	const char *id;
	struct listed_targets targets, dropped;
};

struct target_listing {
	struct arena arena;
	VEC(struct listed_component) components;
	bool matches; /* `matched` is filled in */
	bool failed;  /* out of memory */
};

void target_listing_free(struct target_listing *s);

/* Begins a component; all that is added next belongs to it. */
void target_listing_begin(struct target_listing *s, const char *id);
void target_listing_add_row(struct target_listing *s, const struct target_row *row);
void target_listing_add_dropped(struct target_listing *s,
				const struct andiron_dropped_target *target);
/* Targets from a file: a LIST of MAPs of STRINGs. */
void target_listing_add_file(struct target_listing *s, const struct andiron_value *list);

/* Finds the processes of all targets. 0, or why /proc could not be read. */
int target_listing_match(struct target_listing *s);

/* As JSON in the shape of docs/targets.md, or for people; `only` NULL: all components. Failures
 * stay in the buffer. */
void target_listing_json(const struct target_listing *s, const char *only, struct buf *out);
void target_listing_text(const struct target_listing *s, const char *only, struct buf *out);

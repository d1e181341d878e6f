/* SPDX-License-Identifier: Apache-2.0 */
/* The targets of one object while they are made: labels that all of them share, then each target's
 * own, which win. A finished target has its labels sorted by name, names unique, values not empty:
 * what target.h wants.
 *
 * Two names that sanitize to the same label give a random winner elsewhere;
 * here it is the one whose key sorts last. A value that is not UTF-8 is left
 * out and counted, since no server of profiles would take it. */
#pragma once

#include "abi/target-list.h"
#include "base/arena.h"
#include "base/vec.h"

#define META "__meta_kubernetes_"

/* What one object may become; what goes beyond is left out and counted. */
#define ROWS_MAX        UINT16_MAX
#define ROWS_MAX_LABELS ((size_t)1 << 20)

/* One target: labels[first .. first + n). */
struct row {
	size_t first;
	uint32_t n;
};

struct label_rows {
	struct arena arena;
	VEC(struct target_label) collected; /* shared ones, then the current target's */
	size_t n_shared;
	VEC(struct target_label) labels; /* of finished targets */
	VEC(struct row) rows;
	uint64_t not_utf8; /* values left out, ever */
	uint64_t cut;      /* targets left out, ever: an object of too many */
	bool failed;       /* out of memory: what is here is not whole */
};

void label_rows_fini(struct label_rows *r);
/* Forgets all targets; memory is kept for the next object. */
void label_rows_begin(struct label_rows *r);

/* Adds a label. `name` and `value` are borrowed until the next label_rows_begin; an empty value is
 * none. */
void label_rows_add(struct label_rows *r, const char *name, struct str value);
void label_rows_add_number(struct label_rows *r, const char *name, uint64_t value);
/* prefix + name, every character of `name` (not byte) that a label name may not have replaced by
 * one underscore. */
void label_rows_add_sanitized(struct label_rows *r, const char *prefix, struct str name,
			      struct str value);
/* A map<string, string> field as PREFIX_x = value and PRESENT_x = "true". */
void label_rows_add_map(struct label_rows *r, struct str message, uint32_t field,
			const char *prefix, const char *present);

/* "host:port", with brackets where the host has colons. NULL and `failed`
 * when memory is short. */
struct str label_rows_join(struct label_rows *r, struct str host, uint64_t port);
/* The text in lower case (ASCII). */
struct str label_rows_lower(struct label_rows *r, struct str text);

/* What was added so far is shared by all targets. Once. */
void label_rows_share(struct label_rows *r);
/* What was added since is a target. */
void label_rows_finish(struct label_rows *r);

/* SPDX-License-Identifier: Apache-2.0 */
/* A label set while rules work on it. Its order is what labelmap sees: first the labels it began
 * with, by name, as long as they are as they were, then those that were set, in the order of their
 * first setting.
 *
 * Hostile label sets must not grow without end through rules that add labels: beyond LABELS_MAX
 * labels or LABELS_BYTES_MAX bytes of new text a change is refused. */
#pragma once

#include "abi/target-list.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/vec.h"

#define LABELS_MAX       1024u
#define LABELS_BYTES_MAX (1u << 20)

struct label_entry {
	struct target_label label;
	bool set; /* by a rule */
};

/* A few bytes of a name that mostly differ from those of others: its length and its last eight
 * bytes. Names that are equal have equal keys. */
uint64_t label_key(struct str name);

struct labels {
	VEC(struct label_entry) entries;
	VEC(uint64_t) keys;             /* of the entries' names */
	VEC(struct label_entry) before; /* what labels_keep kept */
	struct buf block;               /* new text, as long as it fits: it must not move */
	struct arena text;              /* what does not */
	size_t bytes;
	/* For rules to work in, so that they need no memory of their own. */
	struct buf joined, target, result;
};

#define LABELS_NULL ((struct labels){.text = ARENA_NULL})

void labels_free(struct labels *l);

/* Starts over with a copy of the slices, which stay the caller's. 0, -E2BIG or -ENOMEM. */
int labels_begin(struct labels *l, const struct target_label *labels, size_t n);

/* The value, empty where there is none. O(labels). */
struct str labels_get(const struct labels *l, struct str name);
/* The same, with the name's key known. */
struct str labels_get_by_key(const struct labels *l, struct str name, uint64_t key);

/* Copies both; an empty value removes the label. 0, -E2BIG or -ENOMEM. */
int labels_set(struct labels *l, struct str name, struct str value);

/* Copies the entries as they are now to `before`. 0 or -ENOMEM. */
int labels_keep(struct labels *l);

void labels_remove(struct labels *l, struct str name);

/* Whether text can be a label's name: UTF-8 and not empty. */
bool label_name_valid(struct str name);

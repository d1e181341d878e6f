/* SPDX-License-Identifier: Apache-2.0 */
/* Where a profile's time went, function by function. A function is a name in a mapped file, or a
 * name of a runtime and where its source begins; frames without a name are one entry for each file.
 * Its total counts a sample once, however often it recurs in the stack; its self is what it was the
 * leaf of, an inlined callee being its own function. */
#pragma once

#include "export/call-tree.h"

/* Names are borrowed from the tree; an empty one is code without a name. */
struct top_entry {
	struct str name;
	struct str module;
	struct str source; /* call-tree.h */
	int64_t self;
	int64_t total;
};

struct top {
	struct top_entry *entries;
	size_t n;
	int64_t sum;     /* of the shown type over all samples */
	int64_t samples; /* -1: the profile counts none */
};

/* Of a tree that was built by file. 0 or -ENOMEM. O(frames of all leaves). */
int top_build(const struct call_tree *t, struct top *ret);

/* The same by the values of a label: entries have a name and a total. Without samples that have it
 * there is no entry. */
int top_build_by(const struct call_tree *t, struct str key, struct top *ret);
void top_fini(struct top *t);

/* Largest first; equal ones by name. */
void top_sort_by_self(struct top *t);
void top_sort_by_total(struct top *t);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a profile's time went, function by function. A function is a name in a
 * mapped file; frames without a name are one entry for each file. Its total
 * counts a sample once, however often it recurs in the stack; its self is
 * what it was the leaf of, an inlined callee being its own function.
 */
#ifndef PPROF_TOP_H
#define PPROF_TOP_H

#include "pprof/decode.h"

/* Names are borrowed from the profile; an empty one is code without a name. */
struct top_entry {
	struct str name;
	struct str module;
	int64_t self;
	int64_t total;
};

struct top {
	struct top_entry *entries;
	size_t n;
	int64_t sum;     /* of the shown type over all samples */
	int64_t samples; /* of "samples" in "count"; -1 if the profile has none */
};

/* Of the profile's type `type`. 0 or -ENOMEM. O(frames). */
int top_build(const struct profile *p, size_t type, struct top *ret);
void top_fini(struct top *t);

/* Largest first; equal ones by name. */
void top_sort_by_self(struct top *t);
void top_sort_by_total(struct top *t);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Two profiles compared, function by function. What is compared are shares of each profile's total,
 * so how long each was recorded, and at which rate, makes no difference.
 *
 * Whether a difference is more than chance says the two-proportion z-test with a pooled proportion:
 * x₁ of n₁ samples against x₂ of n₂ give z = (x₂/n₂ - x₁/n₁) / √(p(1-p)(1/n₁ + 1/n₂)), with
 * p = (x₁+x₂)/(n₁+n₂). Where fewer than DIFF_MIN_EXPECTED samples would be expected in or out of a
 * function on either side, z is 0: the test does not hold there. Of many functions some differ much
 * by chance alone, so the limit for z is Benjamini and Hochberg's: of the rows that are said to
 * have changed, at most one in twenty has not, on average. Source: J. R. Statist. Soc. B 57 (1995)
 * 289-300. */
#pragma once

#include "export/call-tree.h"

#define DIFF_MIN_EXPECTED 5.0
#define DIFF_FALSE_SHARE  0.05 /* of the changes found, how many are none */

enum { DIFF_BEFORE, DIFF_AFTER, DIFF_SIDES };
enum { DIFF_SELF, DIFF_TOTAL, DIFF_MEASURES };

struct diff_measure {
	int64_t value[DIFF_SIDES];
	double samples[DIFF_SIDES];
	double z; /* above 0: grown */
	bool changed;
};

/* Names are borrowed from the tree, as in top.h. */
struct diff_row {
	struct str name, module, source;
	bool is_code; /* no marker */
	struct diff_measure measures[DIFF_MEASURES];
};

struct diff {
	struct call_tree *tree; /* of both (call_tree_build_pair) */
	struct diff_row *rows;
	size_t n;
	int64_t sum[DIFF_SIDES];
	double samples[DIFF_SIDES];
	/* Samples for each that the tree counts: 1, or the inverse of the period where a profile
	 * counts no samples but a value in the period's unit. 0: not known, and nothing can be
	 * tested. */
	double weight[DIFF_SIDES];
	bool tested;
	double limit; /* |z| from which on a row has changed */
};

/* What both show must have one type and unit. 0 or -ENOMEM; diff_fini in any case.
 * O(frames of all stacks + rows log rows). */
int diff_build(const struct profile *before, const struct profile *after, struct diff *ret);
void diff_fini(struct diff *d);

/* Share of the total on a side, 0 to 1, and how much it has grown. */
double diff_share(const struct diff *d, const struct diff_measure *m, int side);
double diff_growth(const struct diff *d, const struct diff_measure *m);

/* What has changed first, and of that what has changed most; then the others likewise. 0, or
 * -ENOMEM (in any order). */
int diff_sort(struct diff *d, int measure);

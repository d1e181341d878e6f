/* SPDX-License-Identifier: Apache-2.0 */
/* For tests: batches of a producer that knows no rules. */
#pragma once

#include <andiron/batch.h>

struct test_odd_counts {
	uint64_t groups, plain; /* plain: of these, those that keep every rule */
};

/* A batch of 1 to 4 groups. Of its groups about half keep every rule of every server; the others
 * break some: labels too many, too long, empty or no text, names and types that no query language
 * spells, values of 0 and below, frames with nothing, times that are long gone or yet to come. One
 * reference. */
const struct andiron_batch *test_odd_batch(unsigned int *seed, struct test_odd_counts *counts);

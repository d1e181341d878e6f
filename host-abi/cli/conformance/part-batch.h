/* SPDX-License-Identifier: Apache-2.0 */
/* A batch to give to a component: of one second, with one stack, as a newer producer sends it: the
 * structs are longer, and there is a column that nobody knows. Its references are counted. */
#pragma once

#include <andiron/batch.h>

#include <stdatomic.h>
#include <stdbool.h>

#define PART_SAMPLES 97u
#define PART_SERVICE "validate-plugin"

struct part_batch {
	struct andiron_batch known;
	uint64_t unknown[4];
	const struct andiron_batch *real;
	struct andiron_column columns[ANDIRON_COL_ENCODED + 1];
	atomic_long n_held;
};

/* False when memory is short. */
bool part_batch_make(struct part_batch *ret);

/* The same in memory that cannot be written: from here on a write to it is noted as the verdict of
 * the trial, which ends. NULL when memory is short. */
struct trial;
const struct andiron_batch *part_batch_freeze(struct part_batch *b, struct trial *t);

/* SPDX-License-Identifier: Apache-2.0 */
/* Sample table: the samples of one buffer, from logs and ring. Equal samples are kept once, with
 * their number. A sample with an id is found by it and equals no other. Of equal waits
 * (SAMPLER_STACK_OFF_CPU) the one that is kept has the sum of their times. The table is bounded:
 * what does not fit counts as lost. Zero-initialised is empty. */
#pragma once

#include "bpfwire/sampler.h"

#include "base/index.h"
#include "base/vec.h"

#define SAMPLE_TABLE_MAX_WORDS (5u << 20) /* 40 MiB */

struct sample_table {
	VEC(uint64_t) words; /* records, one behind the other, each behind how often it came */
	struct index index;
	uint64_t lost; /* samples */
};

void sample_table_free(struct sample_table *s);
/* Forgets all; keeps at most 512 KiB of memory. */
void sample_table_clear(struct sample_table *s);

/* Takes a record of `size` bytes as it came from log or ring. 0, -EINVAL for one that is not whole,
 * -ENOMEM, -E2BIG. Expected O(frames). */
int sample_table_add(struct sample_table *s, const void *record, size_t size);

/* The record of an id, its frames in *ret_pcs; NULL if there is none. Borrowed until the next add
 * or clear. Expected O(1). */
const struct sampler_stack *sample_table_find(const struct sample_table *s, uint64_t id,
					      const uint64_t **ret_pcs);

/* Visits all, with their numbers. Borrowed until the next add or clear; fn must not add. O(words).
 */
void sample_table_each(const struct sample_table *s,
		       void (*fn)(void *context, const struct sampler_stack *stack,
				  const uint64_t *pcs, uint64_t samples),
		       void *context);

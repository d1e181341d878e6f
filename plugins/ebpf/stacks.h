/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks of one half, as logs and ring delivered them, by their id. Bounded: a
 * stack that no longer fits is not kept, and whoever looks for it counts its
 * samples as lost. Zero-initialised is empty.
 */
#ifndef EBPF_STACKS_H
#define EBPF_STACKS_H

#include "sampler.h"

#include "base/index.h"
#include "base/vec.h"

#define STACKS_MAX_WORDS (4u << 20) /* 32 MiB */

struct stacks {
	VEC(uint64_t) words; /* records, one behind the other */
	struct index index;
};

void stacks_free(struct stacks *s);
/* Forgets all; keeps at most 512 KiB of memory. */
void stacks_clear(struct stacks *s);

/* Keeps a copy of a record of `size` bytes as it came from the ring. 0,
 * -EINVAL for one that is not whole, -ENOMEM, -E2BIG. Expected O(frames). */
int stacks_add(struct stacks *s, const void *record, size_t size);

/* The record of an id, its frames in *ret_pcs; NULL if there is none. Borrowed
 * until the next add or clear. Expected O(1). */
const struct sampler_stack *stacks_find(const struct stacks *s, uint64_t id,
					const uint64_t **ret_pcs);

/* Visits all. O(words). */
void stacks_each(const struct stacks *s,
		 void (*fn)(void *context, const struct sampler_stack *stack, const uint64_t *pcs),
		 void *context);

#endif

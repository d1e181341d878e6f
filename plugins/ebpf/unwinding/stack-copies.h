/* SPDX-License-Identifier: Apache-2.0 */
/* Stack copies of one snapshot, assembled from its parts: the sampled stack (in parts where it is
 * deep), its outer end, and the other stack on which it may continue. See SAMPLER_SNAPSHOT_PARTS.
 * At most STACK_COPIES_MAX are assembled; the oldest gives way. Zero-initialised is empty. */
#pragma once

#include "ebpf/unwinding/native-unwind.h"

/* As many as there may be threads that send parts at a time, or nearly. */
#define STACK_COPIES_MAX 8

struct stack_copies_of {
	uint64_t id;
	uint32_t buffer;
	uint32_t used;
	/* Parts that are there; of the sampled one with the first, which comes last. */
	uint32_t n_parts[SAMPLER_COPIES];
	struct walk_stack stacks[SAMPLER_COPIES];
	uint8_t *bytes[SAMPLER_COPIES]; /* room for all parts that there may be, or NULL */
};

struct stack_copies {
	struct stack_copies_of of[STACK_COPIES_MAX];
	uint32_t n_begun; /* since stack_copies_rest */
};

void stack_copies_free(struct stack_copies *c);

/* Keeps a part: SAMPLER_RECORD_MORE, of which `n` is right. One that does not go on where the one
 * before ended is none of ours. */
void stack_copies_add(struct stack_copies *c, const struct sampler_snapshot *part);

/* All that there is of a snapshot's stacks, of which `n` is right; borrowed until the next
 * stack_copies_add, and from the snapshot. Parts of the sampled one above a first that is not whole
 * are not next to it, and left out. */
void stack_copies_take(struct stack_copies *c, const struct sampler_snapshot *snapshot,
		       struct walk_stack ret[SAMPLER_COPIES]);

/* Gives memory back, if none was needed since the last time. */
void stack_copies_rest(struct stack_copies *c);

/* SPDX-License-Identifier: Apache-2.0 */
/* Native unwinder: bpf/unwinder/native-stack.h compiled for user space. It unwinds stack snapshots
 * by the walker's tables. They come from processes that were unknown when sampled, and from pages
 * that were absent. Any thread, while the tables hold still. */
#pragma once

#include "bpfwire/sampler.h"
#include "bpfwire/unwind-tables.h"

#include <stdint.h>

/* The register that is the stack pointer, in sampler_snapshot.regs. */
#if defined(__aarch64__)
#define WALK_STACK_POINTER UNWIND_ARM_SP
#else
#define WALK_STACK_POINTER UNWIND_X86_RSP
#endif

/* A copy of a stack, or of a part of one; n 0: there is none. */
struct walk_stack {
	const uint8_t *p;
	uint64_t n;
	uint64_t at; /* its address */
};

struct walk_tables {
	void *context;
	/* The memory of a slab or NULL; two slabs at a time must stay where they are. */
	const uint8_t *(*slab)(void *context, uint32_t slab);
	const struct unwind_entry *rules;
	uint32_t n_rules;
	uint64_t pc_mask;            /* of return addresses */
	struct unwind_set *rows;     /* UNWIND_SETS, the cache of rows; NULL: none */
	struct unwind_chain *chains; /* UNWIND_CHAINS, the cache of chains; NULL: none */
	/* Asked for rules in place of all of these, unless NULL: the rule and its auxiliary word
	 * for an address; 0: not known, which ends the walk (UNWIND_END_NEW). */
	uint64_t (*find)(void *context, uint64_t at, uint64_t *ret_aux);
};

/* Walks from where the snapshot was taken, over the copies of its stacks, in the address space with
 * this word (unwind_space_word), into *w: its frames are those of the process from the sampled one
 * on, leaf first, and its `end` says why there are no more; UNWIND_END_CUT where it left what was
 * copied. Frames of language runtimes end it. O(frames); w needs no initialising. */
void walk_snapshot(const struct walk_tables *tables, const struct sampler_snapshot *snapshot,
		   const struct walk_stack stacks[SAMPLER_COPIES], uint64_t word,
		   struct andiron_walk *w);

/* The bits of a return address that are address, on this machine. */
uint64_t walk_pc_mask(void);

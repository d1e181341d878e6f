/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers of rules: each rule with its auxiliary word stands once in the walker's `rules`,
 * however many files use it. Who uses a number retains it; one that nobody uses any more keeps its
 * meaning until rulebook_reclaim, which is called when no program can still be
 * using it, and is the same number if it is asked for before. Number 0 is rule 0, for ever.
 *
 * Distributions have a few thousand rules, so numbers run out only where somebody wants them to.
 */
#ifndef EBPF_RULEBOOK_H
#define EBPF_RULEBOOK_H

#include "unwind-tables.h"

#include "base/index.h"
#include "base/vec.h"

struct rulebook_use {
	uint32_t n_refs;
	uint32_t next; /* of those nobody uses, or of those that are free */
	bool listed;   /* among those nobody uses; it may be in use again */
};

struct rulebook {
	struct unwind_entry *entries;  /* the walker's */
	VEC(struct rulebook_use) uses; /* by number */
	struct index index;
	uint32_t idle, free; /* lists of numbers, ended by 0 */
	uint32_t n;          /* numbers given out */
};

/* `entries`: UNWIND_RULES_MAX + 1, borrowed. */
void rulebook_init(struct rulebook *b, struct unwind_entry *entries);
void rulebook_fini(struct rulebook *b);

/* The number of a rule; 0 for rule 0. One that is new is written, and is free at the next
 * reclaim if nobody retains it. -ENOSPC: all numbers are taken; -ENOMEM. O(1). */
int32_t rulebook_number(struct rulebook *b, uint64_t rule, uint64_t aux);

/* Neither does anything to number 0, nor fails. O(1). */
void rulebook_retain(struct rulebook *b, uint16_t number);
void rulebook_release(struct rulebook *b, uint16_t number);

/* Whether there is something to reclaim. */
bool rulebook_has_idle(const struct rulebook *b);
/* Frees the numbers that nobody uses. O(these). */
void rulebook_reclaim(struct rulebook *b);

#endif

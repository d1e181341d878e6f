/* SPDX-License-Identifier: Apache-2.0 */
/* Rule table: each rule with its auxiliary word has one number in the walker's `rules`, however
 * many files use it. A user retains its number. An unused number keeps its meaning until
 * rule_table_reclaim, which is called when no program can use it, and comes back if it is asked for
 * before. Number 0 is rule 0, forever. A new number that nobody retains is free after
 * rule_table_settle.
 *
 * Distributions have a few thousand rules, a file at most some 1,200. A file's maker takes at most
 * a quarter of all numbers. */
#pragma once

#include "bpfwire/unwind-tables.h"

#include "base/index.h"
#include "base/vec.h"

struct rule_table_use {
	uint32_t n_refs;
	uint32_t next; /* of one of the lists */
	bool listed;   /* among the new or those that nobody uses; it may be in use again */
};

struct rule_table {
	struct unwind_entry *entries;    /* the walker's */
	VEC(struct rule_table_use) uses; /* by number */
	struct index index;
	uint32_t fresh, idle, free; /* lists of numbers, ended by 0 */
	uint32_t n;                 /* numbers given out */
};

/* `entries`: UNWIND_RULES_MAX + 1, borrowed. */
void rule_table_init(struct rule_table *b, struct unwind_entry *entries);
void rule_table_fini(struct rule_table *b);

/* The number of a rule, new if need be and written then; 0 for rule 0. -ENOSPC: all numbers are
 * taken; -ENOMEM. O(1). */
int32_t rule_table_number(struct rule_table *b, uint64_t rule, uint64_t aux);
/* The same if it has one, else -ENOSPC. */
int32_t rule_table_find(const struct rule_table *b, uint64_t rule, uint64_t aux);
/* No number is new any more; those that nobody retains are free. Before the walker is led to any.
 * O(new ones). */
void rule_table_settle(struct rule_table *b);

/* Neither does anything to number 0, nor fails. O(1). */
void rule_table_retain(struct rule_table *b, uint16_t number);
void rule_table_release(struct rule_table *b, uint16_t number);

/* Whether there is something to reclaim. */
bool rule_table_has_idle(const struct rule_table *b);
/* Frees the numbers that nobody uses. O(these). */
void rule_table_reclaim(struct rule_table *b);

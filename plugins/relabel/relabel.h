/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine of discovery.relabel: rules over target lists, kept incrementally.
 * A row that changed is computed again and no other.
 *
 * An output row stands for one input row for as long as that exists, and has
 * an id of its own, since rows of several producers may have the same id. Output
 * order is producer by producer, in a producer its order.
 */
#ifndef RELABEL_RELABEL_H
#define RELABEL_RELABEL_H

#include "abi/target-list.h"
#include "rule.h"

#include <andiron/value.h>

struct rules {
	struct rule **p;
	size_t n;
	size_t capacity;
};

void rules_free(struct rules *rules);

/* One rule block. On failure *ret_at is the value that is wrong. */
int rule_from_value(const struct andiron_value *block, struct rule **ret, struct error *err,
		    const struct andiron_value **ret_at);

/* All of the arguments' rules, in order; stops at the first error. */
int rules_from_args(const struct andiron_value *args, struct rules *ret, struct error *err);

struct relabel;

struct relabel *relabel_new(uint64_t producer);
void relabel_free(struct relabel *r);

/* Takes the rules over, computes all rows again. 0 or -ENOMEM, and then it goes
 * on with the rules before, which the caller keeps no more. O(rows · rules). */
int relabel_set_rules(struct relabel *r, struct rules *rules);

/* Applies an update of the input. Errors as target_table_apply; -ENOMEM may
 * leave output rows as they were. O(changed rows · rules). */
int relabel_apply(struct relabel *r, const struct andiron_targets *update);

/* The change of the output since the last flush; as target_list_flush. */
int relabel_flush(struct relabel *r, const struct andiron_targets **ret);

/* A row of the input that is not in the output, and the rule that dropped it,
 * from 1; 0: its labels grew too large. Borrowed for the call. */
typedef void (*relabel_dropped_fn)(void *context, const struct target_row *row, size_t rule);

/* Calls fn for each, in the order of the input; works the rules off again to
 * find out. 0 or -ENOMEM. O(rows · rules). */
int relabel_each_dropped(struct relabel *r, relabel_dropped_fn fn, void *context);

/* The rule of that number, from 1; until the rules are set again. */
const struct rule *relabel_rule(const struct relabel *r, size_t number);

struct relabel_totals {
	uint64_t rows;      /* of input now */
	uint64_t kept;      /* of output now */
	uint64_t large;     /* left out so far because rules made them too large */
	uint64_t evaluated; /* targets that the rules have worked on so far */
};

void relabel_totals(const struct relabel *r, struct relabel_totals *ret);

#endif

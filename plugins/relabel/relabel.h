/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine of discovery.relabel: rules over targets, kept incrementally. A row
 * that is said is computed, and no other; what comes out as it was is not sent.
 *
 * No labels are kept, neither of what comes in nor of what goes out: of each target
 * a hash of what was sent, by which it is seen whether that has changed (of 64
 * bits: a change goes unseen once in 10^19). Where all labels are needed again, for
 * new rules or a new consumer, they are asked for (host.h, request_targets).
 *
 * An output row stands for one input row for as long as the rules keep it, and has
 * an id of its own, since rows of several producers may have the same id. Output
 * order is producer by producer, in a producer its order.
 */
#ifndef RELABEL_RELABEL_H
#define RELABEL_RELABEL_H

#include "abi/target-list.h"
#include "relabel/rule.h"

#include <andiron/host.h>

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

/* Reports each rule that is wrong; 0. As `validate` (component.h). */
int32_t rules_check(const struct andiron_host *host, const struct andiron_value *args,
		    struct andiron_report *report);

struct relabel;

struct relabel *relabel_new(uint64_t producer);
void relabel_free(struct relabel *r);

/* Takes the rules over. They work on what is applied from now on, so all is to be
 * said again. */
void relabel_set_rules(struct relabel *r, struct rules *rules);

/* All output is to be sent again: each row when it is said again. */
void relabel_resend(struct relabel *r);

/* Applies an update of the input: 0, -EINVAL, -EAGAIN (target-feed.h), or -ENOMEM:
 * some of its rows are as before, and must be said again. O(rows · rules). */
int relabel_apply(struct relabel *r, const struct andiron_targets *update);

/*
 * The change of the output since the last flush, with one reference; the first one
 * is a SNAPSHOT. *ret is NULL if nothing changed (never for the first). 0 or
 * -ENOMEM: the next flush will be a SNAPSHOT, and all must be said again after it.
 */
int relabel_flush(struct relabel *r, const struct andiron_targets **ret);

/* A row that is dropped, and the rule that does it, from 1; 0: its labels grow too
 * large. Borrowed for the call. */
typedef void (*relabel_dropped_fn)(void *context, const struct target_row *row, size_t rule);

/* Works the rules off over the rows of an update and calls fn for each that they
 * drop, in its order; changes nothing. 0, -EINVAL or -ENOMEM. O(rows · rules). */
int relabel_each_dropped(struct relabel *r, const struct andiron_targets *targets,
			 relabel_dropped_fn fn, void *context);

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

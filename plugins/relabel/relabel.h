/* SPDX-License-Identifier: Apache-2.0 */
/* The engine of discovery.relabel applies rules to targets, incrementally: it computes the rows of
 * an update and sends the results that changed.
 *
 * It keeps no labels. Each target has a 64-bit hash of what was sent for it, so a change is missed
 * once in 10^19. New rules and new consumers need all labels: these are requested again (host.h,
 * request_targets). So a hundred thousand pods take some megabytes.
 *
 * Rows of several producers may have the same id. An output row has an id of its own, for as long
 * as the rules keep its input row. Output is ordered by producer, then by the producer's order. */
#pragma once

#include "abi/target-list.h"
#include "relabel/rule.h"

#include <andiron/host.h>

struct rules {
	struct rule **p;
	size_t n;
	size_t capacity;
};

void rules_free(struct rules *rules);

/* All of the arguments' rules, in order; stops at the first error. */
int rules_from_args(const struct andiron_value *args, struct rules *ret, struct error *err);

/* Reports each rule that is wrong; 0. As `validate` (component.h). */
int32_t rules_check(const struct andiron_host *host, const struct andiron_value *args,
		    struct andiron_report *report);

struct relabel;

struct relabel *relabel_new(uint64_t producer);
void relabel_free(struct relabel *r);

/* Takes ownership of the rules. They apply from the next update on: request all targets. */
void relabel_set_rules(struct relabel *r, struct rules *rules);

/* Sends each row anew when it is resent: request all targets. */
void relabel_resend(struct relabel *r);

/* Applies an update of the input: 0, -EINVAL, -EAGAIN (target-feed.h), or -ENOMEM: some of its rows
 * are as before, and must be resent. O(rows · rules). */
int relabel_apply(struct relabel *r, const struct andiron_targets *update);

/* The change of the output since the last flush, with one reference; the first one
 * is a SNAPSHOT. *ret is NULL if nothing changed (never for the first). 0 or
 * -ENOMEM: the next flush will be a SNAPSHOT, and all targets must be resent after it. */
int relabel_flush(struct relabel *r, const struct andiron_targets **ret);

/* A row that is dropped, and the rule that does it, from 1; 0: its labels grow too large. Borrowed
 * for the call. */
typedef void (*relabel_dropped_fn)(void *context, const struct target_row *row, size_t rule);

/* Applies the rules to the rows of an update and calls fn for each dropped row, in order. Changes
 * nothing. 0, -EINVAL or -ENOMEM. O(rows · rules). */
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

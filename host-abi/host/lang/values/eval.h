/* SPDX-License-Identifier: Apache-2.0 */
/* The evaluator: expressions to values. What components export is not known before they run, so a
 * reference is a CAPSULE: a handle that names the node and its export, which options for targets
 * and receivers take. array.concat of targets gives a CAPSULE with the parts as its items, so that
 * every producer keeps its own edge. Whatever looks into targets opens the CAPSULE: it becomes the
 * list that was supplied (foreach-items.h).
 *
 * Source: grafana/alloy, syntax/vm and syntax/internal/stdlib. */
#pragma once

#include "host/lang/lang.h"
#include "host/lang/syntax/tree.h"

#include <andiron/value.h>

/* False after an error (or without memory), which is reported; *ret is undefined then. A whole
 * number from 2^63 to 2^64-1 is a FLOAT that also keeps its bits in `integer`; larger ones are only
 * FLOAT. */
bool eval(struct lang *l, const struct expr *e, struct andiron_value *ret);

/* A value of that kind, placed where the expression is. */
struct andiron_value eval_value(const struct expr *e, uint32_t kind);

/* "a string", "a receiver of profiles". */
const char *eval_describe(const struct lang *l, const struct andiron_value *value);

/* What a CAPSULE refers to. Not for the concat of targets, whose n_items is not 0. */
uint32_t eval_node(const struct andiron_value *capsule);
const struct andiron_export *eval_export(const struct lang *l, const struct andiron_value *capsule);
/* Whether it stands for targets: a CAPSULE of such an export, or a concat. */
bool eval_is_targets(const struct lang *l, const struct andiron_value *value);
/* Evaluates `e`; targets become a list of objects. While they are not known it is empty, and its
 * `string` is who will supply it; so it is with what functions make of it. */
bool eval_open(struct lang *l, const struct expr *e, struct andiron_value *ret);
/* Whether it stands for a receiver of profiles. */
bool eval_is_receiver(const struct lang *l, const struct andiron_value *value);

/* Text as a number, as literals are read (`octal`: a leading 0 says so). False if it is none or too
 * large. */
bool eval_number(struct lang *l, struct str text, bool octal, struct andiron_value *ret);

/* The member of an object by its key, or NULL; of equal keys the last. O(members). */
const struct andiron_value *eval_member(const struct andiron_value *map, struct str key);

/* Whether two values are equal, as == says. */
bool eval_equal(const struct andiron_value *a, const struct andiron_value *b);

/* An INT or a FLOAT as text, in the fewest digits that read back the same. STR_NULL without memory.
 */
struct str eval_number_text(struct lang *l, const struct andiron_value *v);

/* Within the evaluator. */
bool eval_unary(struct lang *l, const struct expr *e, struct andiron_value *ret);
bool eval_binary(struct lang *l, const struct expr *e, struct andiron_value *ret);
bool eval_call(struct lang *l, const struct expr *e, struct andiron_value *ret);
bool eval_reference(struct lang *l, const struct expr *e, struct andiron_value *ret);
/* "a.b.c" of a run of NAME and ACCESS, STR_NULL if it is something else. */
struct str eval_path(struct lang *l, const struct expr *e);

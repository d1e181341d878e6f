/* SPDX-License-Identifier: Apache-2.0 */
/* Rules over target lists. Contract in relabel.h. */
#include "relabel.h"

#include "base/check.h"

#include <errno.h>

#define ORDER_BITS 48 /* of an order; the rest is the producer's place */

struct relabel {
	struct rules rules;
	struct target_table *input;
	struct target_list *output;
	struct labels scratch;
	VEC(struct target_label) result;
	uint64_t last_id;
	struct relabel_totals totals;
	int failure; /* of the update being applied */
};

void rules_free(struct rules *rules)
{
	vec_each (rules, rule)
		rule_free(*rule);
	vec_free(rules);
}

struct relabel *relabel_new(uint64_t producer)
{
	struct relabel *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->input = target_table_new();
	r->output = target_list_new(producer);
	if (r->input && r->output)
		return r;
	relabel_free(r);
	return NULL;
}

void relabel_free(struct relabel *r)
{
	if (!r)
		return;
	rules_free(&r->rules);
	target_table_free(r->input);
	target_list_free(r->output);
	labels_free(&r->scratch);
	vec_free(&r->result);
	free(r);
}

/* What the row itself keeps: the id of its output, and whether that is there. */
static uint64_t output_id(struct relabel *r, struct target_row *row)
{
	if (!row->user)
		row->user = (void *)(uintptr_t)(++r->last_id << 1);
	return (uint64_t)(uintptr_t)row->user >> 1;
}

static void note_kept(struct relabel *r, struct target_row *row, bool kept)
{
	uintptr_t bits = (uintptr_t)row->user;
	bool was = bits & 1;

	check(kept || !was || r->totals.kept > 0);
	r->totals.kept += (uint64_t)kept - (uint64_t)was;
	row->user = (void *)((bits & ~(uintptr_t)1) | kept);
}

static void leave_out(struct relabel *r, struct target_row *row)
{
	target_list_remove(r->output, output_id(r, row));
	note_kept(r, row, false);
}

/* One order from two: orders beyond 2^48 are the last, producers count modulo 2^16. */
static uint64_t output_order(const struct target_row *row)
{
	const uint64_t limit = (UINT64_C(1) << ORDER_BITS) - 1;

	return row->producer << ORDER_BITS | (row->order < limit ? row->order : limit);
}

/* *ret_n is how many rules have worked on it. */
static int run_rules(struct relabel *r, const struct target_row *row, size_t *ret_n)
{
	int result = labels_begin(&r->scratch, row->labels, row->n_labels);
	size_t i = 0;

	while (result == RULE_KEPT && i < r->rules.n)
		result = rule_apply(r->rules.p[i++], &r->scratch);
	*ret_n = i;
	return result;
}

static int put(struct relabel *r, struct target_row *row)
{
	int result;

	r->result.n = 0;
	if (!vec_reserve(&r->result, r->scratch.entries.n + 1))
		return -ENOMEM;
	vec_each (&r->scratch.entries, e)
		r->result.p[r->result.n++] = e->label;
	result = target_list_set(r->output, output_id(r, row), output_order(row), r->result.p,
				 r->result.n);
	if (!result)
		note_kept(r, row, true);
	return result;
}

static void compute(struct relabel *r, struct target_row *row)
{
	size_t ignored;
	int result = run_rules(r, row, &ignored);

	if (result == RULE_KEPT)
		result = put(r, row);
	else if (result != -ENOMEM)
		leave_out(r, row);
	r->totals.evaluated++;
	r->totals.large += result == -E2BIG;
	if (result == -ENOMEM)
		r->failure = result;
}

static void on_change(void *context, int change, struct target_row *row)
{
	struct relabel *r = context;

	if (change == TARGET_REMOVED)
		leave_out(r, row);
	else
		compute(r, row);
}

int relabel_apply(struct relabel *r, const struct andiron_targets *update)
{
	int result;

	r->failure = 0;
	result = target_table_apply(r->input, update, on_change, r);
	return result ? result : r->failure;
}

int relabel_set_rules(struct relabel *r, struct rules *rules)
{
	struct rules before = r->rules;

	r->rules = *rules;
	*rules = (struct rules){0};
	r->failure = 0;
	target_table_each(r->input, on_change, r);
	if (r->failure) {
		struct rules refused = r->rules;

		r->rules = before;
		target_table_each(r->input, on_change, r);
		rules_free(&refused);
		return r->failure;
	}
	rules_free(&before);
	return 0;
}

int relabel_flush(struct relabel *r, const struct andiron_targets **ret)
{
	return target_list_flush(r->output, ret);
}

void relabel_totals(const struct relabel *r, struct relabel_totals *ret)
{
	*ret = r->totals;
	ret->rows = target_table_count(r->input);
}

struct looking {
	struct relabel *relabel;
	relabel_dropped_fn fn;
	void *context;
	int failure;
};

static void look(void *context, int change, struct target_row *row)
{
	struct looking *l = context;
	size_t n;
	int result = run_rules(l->relabel, row, &n);

	if (result == -ENOMEM)
		l->failure = result;
	else if (result != RULE_KEPT)
		l->fn(l->context, row, result == RULE_DROPPED ? n : 0);
}

int relabel_each_dropped(struct relabel *r, relabel_dropped_fn fn, void *context)
{
	struct looking l = {r, fn, context, 0};

	target_table_each(r->input, look, &l);
	return l.failure;
}

const struct rule *relabel_rule(const struct relabel *r, size_t number)
{
	check(number > 0 && number <= r->rules.n);
	return r->rules.p[number - 1];
}

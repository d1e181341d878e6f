/* SPDX-License-Identifier: Apache-2.0 */
/* Rules over targets that pass. Contract in relabel.h. */
#include "relabel/relabel.h"

#include "abi/target-feed.h"
#include "abi/target-key.h"
#include "abi/target-row.h"
#include "abi/value.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/index.h"
#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>

#define ORDER_BITS 48 /* of an order; the rest is the producer's place */

/* The state of an input target, by producer and row. Labels are not kept (relabel.h). */
struct input {
	uint64_t producer, row;
	uint64_t hash;        /* of the labels and the order sent last */
	uint64_t output : 47; /* the id of its row in the output; 0: it has none */
	uint64_t round : 16;  /* the resend that it was sent in last */
	uint64_t seen : 1;    /* in the SNAPSHOT that is being applied */
};

#define INPUT_OUTPUT_MAX ((UINT64_C(1) << 47) - 1) /* a million a second for four years */

struct inputs {
	VEC(struct input) list;
	struct index index;
};

static void inputs_free(struct inputs *inputs)
{
	vec_free(&inputs->list);
	index_free(&inputs->index);
}

static struct target_key key_at(const void *array, uint32_t position)
{
	const struct input *input = &((const struct input *)array)[position];

	return (struct target_key){input->producer, input->row};
}

/* NULL if there is none; borrowed until the next is added or removed. O(1). */
static struct input *inputs_find(struct inputs *inputs, uint64_t producer, uint64_t row)
{
	uint32_t at = target_key_find(&inputs->index, (struct target_key){producer, row}, key_at,
				      inputs->list.p);

	return at == INDEX_NONE ? NULL : &inputs->list.p[at];
}

/* The same, made if need be; NULL when memory is short. */
static struct input *inputs_get(struct inputs *inputs, uint64_t producer, uint64_t row)
{
	struct input *input = inputs_find(inputs, producer, row);
	size_t n = inputs->list.n;

	if (input)
		return input;
	if (!vec_reserve(&inputs->list, 1) ||
	    target_key_add(&inputs->index, (struct target_key){producer, row}, n) < 0)
		return NULL;
	inputs->list.p[inputs->list.n++] = (struct input){.producer = producer, .row = row};
	return &inputs->list.p[n];
}

/* The last one takes its place. */
static void inputs_remove(struct inputs *inputs, struct input *input)
{
	uint32_t at = (uint32_t)(input - inputs->list.p), last = (uint32_t)inputs->list.n - 1;

	check(at <= last);
	target_key_remove(&inputs->index, at, last, key_at, inputs->list.p);
	*input = inputs->list.p[last];
	inputs->list.n--;
}

struct relabel {
	struct rules rules;
	struct target_feeds feeds;
	struct inputs inputs;
	struct labels scratch;
	VEC(struct target_label) row; /* the target that is worked on */
	struct update_builder update; /* what is to be sent; of rows the new ones */
	VEC(struct andiron_target) replaced;
	uint64_t producer, generation; /* of the output; 0: nothing was sent yet */
	uint64_t last_id;
	uint16_t round;
	bool lost; /* memory was short: what was sent is void */
	struct relabel_totals totals;
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

	if (r)
		r->producer = producer;
	return r;
}

void relabel_free(struct relabel *r)
{
	if (!r)
		return;
	rules_free(&r->rules);
	target_feeds_free(&r->feeds);
	inputs_free(&r->inputs);
	labels_free(&r->scratch);
	vec_free(&r->row);
	vec_free(&r->replaced);
	update_discard(&r->update);
	free(r);
}

/* One order from two: orders beyond 2^48 are the last, producers count modulo 2^16. */
static uint64_t output_order(uint64_t producer, uint64_t order)
{
	const uint64_t limit = (UINT64_C(1) << ORDER_BITS) - 1;

	return producer << ORDER_BITS | (order < limit ? order : limit);
}

static bool in_order(const struct target_label *labels, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!labels[i].value.n || (i && str_cmp(labels[i - 1].name, labels[i].name) >= 0))
			return false;
	return true;
}

/* Puts a target's labels into r->row, in the order of target.h whatever the producer's.
 * *ret_copy is to be freed after use. 0 or -ENOMEM. */
static int read_row(struct relabel *r, const struct andiron_targets *u,
		    const struct andiron_target *t, struct target_label **ret_copy)
{
	struct target_label *copy;
	uint32_t n;

	r->row.n = 0;
	if (!vec_reserve(&r->row, t->n_labels + 1))
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n_labels; i++) {
		const struct andiron_label *l = &u->labels[t->label_start + i];

		r->row.p[r->row.n++] = (struct target_label){abi_str(u->strings[l->name]),
							     abi_str(u->strings[l->value])};
	}
	if (in_order(r->row.p, r->row.n))
		return 0;
	copy = target_labels_copy(r->row.p, r->row.n, &n);
	if (!copy)
		return -ENOMEM;
	memcpy(r->row.p, copy, n * sizeof(*copy));
	r->row.n = n;
	*ret_copy = copy;
	return 0;
}

/* Applies the rules to r->row. *ret_n is how many were applied. */
static int run_rules(struct relabel *r, size_t *ret_n)
{
	int result = labels_begin(&r->scratch, r->row.p, r->row.n);
	size_t i = 0;

	while (result == RULE_KEPT && i < r->rules.n)
		result = rule_apply(r->rules.p[i++], &r->scratch);
	*ret_n = i;
	return result;
}

/* By insertion: rules leave most labels where they were, which is in order. */
static void sort(struct target_label *labels, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct target_label moved = labels[i];
		size_t k = i;

		if (target_label_compare(&labels[i - 1], &moved) <= 0)
			continue;
		if (n > LABELS_MAX / 16) {
			qsort(labels, n, sizeof(*labels), target_label_compare);
			return;
		}
		for (; k > 0 && target_label_compare(&labels[k - 1], &moved) > 0; k--)
			labels[k] = labels[k - 1];
		labels[k] = moved;
	}
}

static void leave_out(struct relabel *r, struct input *input)
{
	if (!input->output)
		return;
	check(r->totals.kept > 0);
	update_remove(&r->update, input->output);
	input->output = 0;
	r->totals.kept--;
}

/* Adds what the rules made, if it is not what was sent last. */
static int put(struct relabel *r, struct input *input, uint64_t order)
{
	struct target_row row = {.order = output_order(input->producer, order)};
	uint64_t hash;

	r->row.n = 0;
	if (!vec_reserve(&r->row, r->scratch.entries.n + 1))
		return -ENOMEM;
	vec_each (&r->scratch.entries, e)
		r->row.p[r->row.n++] = e->label;
	sort(r->row.p, r->row.n);
	row.labels = r->row.p;
	row.n_labels = (uint32_t)r->row.n;
	row.fingerprint = target_labels_hash(row.labels, row.n_labels);
	hash = hash_mix(row.fingerprint, row.order);
	if (input->output && input->hash == hash && input->round == r->round)
		return 0;
	row.row = input->output ? input->output : ++r->last_id;
	check(row.row <= INPUT_OUTPUT_MAX);
	update_add(&r->update, &row);
	if (input->output && !r->update.failed &&
	    !vec_push(&r->replaced, r->update.rows.p[--r->update.rows.n]))
		r->update.failed = true;
	r->totals.kept += !input->output;
	input->output = row.row & INPUT_OUTPUT_MAX;
	input->hash = hash;
	input->round = r->round;
	return 0;
}

static int compute(struct relabel *r, struct input *input, uint64_t order)
{
	size_t ignored;
	int result = run_rules(r, &ignored);

	r->totals.evaluated++;
	if (result == RULE_KEPT)
		return put(r, input, order);
	if (result == -ENOMEM)
		return result;
	r->totals.large += result == -E2BIG;
	leave_out(r, input);
	return 0;
}

static int take(struct relabel *r, const struct andiron_targets *u, const struct andiron_target *t)
{
	struct input *input = inputs_get(&r->inputs, u->producer, t->row);
	struct target_label *copy = NULL;
	int result = input ? read_row(r, u, t, &copy) : -ENOMEM;

	if (input)
		input->seen = 1;
	if (result == 0)
		result = compute(r, input, t->order);
	free(copy);
	return result;
}

static void forget(struct relabel *r, struct input *input)
{
	if (!input)
		return;
	leave_out(r, input);
	inputs_remove(&r->inputs, input);
}

/* Removes the inputs that a SNAPSHOT did not contain. */
static void forget_unseen(struct relabel *r, uint64_t producer)
{
	for (size_t i = r->inputs.list.n; i-- > 0;) {
		struct input *input = &r->inputs.list.p[i];

		if (input->producer == producer && !input->seen)
			forget(r, input);
	}
}

int relabel_apply(struct relabel *r, const struct andiron_targets *u)
{
	bool snapshot = u->flags & ANDIRON_TARGETS_SNAPSHOT;
	struct target_feed *feed = NULL;
	int result = target_feeds_take(&r->feeds, u, &feed);

	if (result < 0)
		return result;
	if (snapshot)
		vec_each (&r->inputs.list, input)
			input->seen = 0;
	for (uint64_t i = 0; i < u->n_rows; i++)
		if (take(r, u, &u->rows[i]) < 0)
			result = -ENOMEM;
	for (uint64_t i = 0; i < u->n_removed; i++)
		forget(r, inputs_find(&r->inputs, u->producer, u->removed[i]));
	if (snapshot)
		forget_unseen(r, u->producer);
	/* A row that memory was short for is missing until it is resent. */
	target_feed_took(feed, u);
	return result;
}

void relabel_set_rules(struct relabel *r, struct rules *rules)
{
	rules_free(&r->rules);
	r->rules = *rules;
	*rules = (struct rules){0};
}

void relabel_resend(struct relabel *r)
{
	r->round++;
}

/* Voids what was sent and what was to be sent: rows come back as new ones, under new ids. */
static void lose(struct relabel *r)
{
	update_discard(&r->update);
	r->update = (struct update_builder){0};
	r->replaced.n = 0;
	vec_each (&r->inputs.list, input)
		input->output = 0;
	r->totals.kept = 0;
	r->lost = true;
}

int relabel_flush(struct relabel *r, const struct andiron_targets **ret)
{
	struct update_builder *u = &r->update;
	bool snapshot = r->generation == 0 || r->lost;
	int result;

	*ret = NULL;
	if (!snapshot && !u->failed && !u->rows.n && !r->replaced.n && !u->removed.n)
		return 0;
	u->n_added = u->rows.n;
	if (!u->failed && !vec_reserve(&u->rows, r->replaced.n + 1))
		u->failed = true;
	for (size_t i = 0; !u->failed && i < r->replaced.n; i++)
		u->rows.p[u->rows.n++] = r->replaced.p[i];
	if (snapshot)
		u->n_added = u->rows.n;
	result = update_finish(u, r->producer, r->generation + 1,
			       snapshot ? ANDIRON_TARGETS_SNAPSHOT : 0, ret);
	r->update = (struct update_builder){0};
	if (result < 0) {
		lose(r);
		return result;
	}
	vec_free(&r->replaced);
	r->lost = false;
	r->generation++;
	return 0;
}

void relabel_totals(const struct relabel *r, struct relabel_totals *ret)
{
	*ret = r->totals;
	ret->rows = r->inputs.list.n;
}

static int try_row(struct relabel *r, const struct andiron_targets *u,
		   const struct andiron_target *t, relabel_dropped_fn fn, void *context)
{
	struct target_label *copy = NULL;
	size_t n = 0;
	int result = read_row(r, u, t, &copy);
	const struct target_row row = {.labels = r->row.p, .n_labels = (uint32_t)r->row.n};

	if (result == 0)
		result = run_rules(r, &n);
	if (result != -ENOMEM && result != RULE_KEPT)
		fn(context, &row, result == RULE_DROPPED ? n : 0);
	free(copy);
	return result == -ENOMEM ? result : 0;
}

int relabel_each_dropped(struct relabel *r, const struct andiron_targets *u, relabel_dropped_fn fn,
			 void *context)
{
	int result = target_update_sound(u) ? 0 : -EINVAL;

	for (uint64_t i = 0; result == 0 && i < u->n_rows; i++)
		result = try_row(r, u, &u->rows[i], fn, context);
	return result;
}

const struct rule *relabel_rule(const struct relabel *r, size_t number)
{
	check(number > 0 && number <= r->rules.n);
	return r->rules.p[number - 1];
}

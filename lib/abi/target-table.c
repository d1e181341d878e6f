/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer's table of targets. Contracts in target-list.h. */
#include "abi/target-list.h"

#include "abi/target-feed.h"
#include "abi/target-key.h"
#include "abi/target-row.h"
#include "abi/value.h"
#include "base/check.h"
#include "base/search.h"

#include <errno.h>
#include <stdlib.h>

struct row {
	struct target_row public;
	struct target_label *labels; /* while a change is told the former ones */
	bool seen;                   /* by the snapshot being applied */
};

struct target_table {
	VEC(struct row *) rows;
	struct index index;
	struct target_feeds feeds;
	target_keeps_fn keeps; /* NULL: all */
};

struct str target_label_value(const struct target_row *row, const char *name)
{
	struct str sought = str_of(name);
	uint32_t low = 0, high = row->n_labels;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int order = str_cmp(row->labels[middle].name, sought);

		if (order == 0)
			return row->labels[middle].value;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return STR_NULL;
}

struct target_table *target_table_new(void)
{
	return calloc(1, sizeof(struct target_table));
}

struct target_table *target_table_new_keeping(target_keeps_fn keeps)
{
	struct target_table *table = target_table_new();

	if (table)
		table->keeps = keeps;
	return table;
}

static void row_free(struct row *row)
{
	free(row->labels);
	free(row);
}

void target_table_free(struct target_table *table)
{
	if (!table)
		return;
	vec_each (&table->rows, r)
		row_free(*r);
	vec_free(&table->rows);
	target_feeds_free(&table->feeds);
	index_free(&table->index);
	free(table);
}

static struct target_key key_at(const void *array, uint32_t position)
{
	const struct target_row *row = &((struct row *const *)array)[position]->public;

	return (struct target_key){row->producer, row->row};
}

static uint32_t find(const struct target_table *table, uint64_t producer, uint64_t row)
{
	return target_key_find(&table->index, (struct target_key){producer, row}, key_at,
			       table->rows.p);
}

static struct target_label *labels_of(const struct target_table *table,
				      const struct andiron_targets *u,
				      const struct andiron_target *t, uint32_t *ret_n)
{
	struct target_label *borrowed = malloc((t->n_labels + 1) * sizeof(*borrowed)), *copy;
	uint32_t n = 0;

	if (!borrowed)
		return NULL;
	for (uint32_t i = 0; i < t->n_labels; i++) {
		const struct andiron_label *l = &u->labels[t->label_start + i];

		borrowed[n] = (struct target_label){abi_str(u->strings[l->name]),
						    abi_str(u->strings[l->value])};
		n += !table->keeps || table->keeps(borrowed[n].name);
	}
	copy = target_labels_copy(borrowed, n, ret_n);
	free(borrowed);
	return copy;
}

static struct row *new_row(struct target_table *table, uint64_t producer, uint64_t id)
{
	struct row *row = calloc(1, sizeof(*row));

	if (!row)
		return NULL;
	row->public = (struct target_row){.producer = producer, .row = id};
	if (!vec_reserve(&table->rows, 1) ||
	    target_key_add(&table->index, (struct target_key){producer, id}, table->rows.n) < 0) {
		free(row);
		return NULL;
	}
	table->rows.p[table->rows.n++] = row;
	return row;
}

static int apply_row(struct target_table *table, const struct andiron_targets *u,
		     const struct andiron_target *t, target_change_fn fn, void *context)
{
	uint32_t at = find(table, u->producer, t->row), n = 0;
	struct target_label *labels = labels_of(table, u, t, &n);
	struct row *row = at == INDEX_NONE ? NULL : table->rows.p[at];
	bool is_new = !row;

	if (!labels)
		return -ENOMEM;
	if (is_new)
		row = new_row(table, u->producer, t->row);
	if (!row) {
		free(labels);
		return -ENOMEM;
	}
	row->seen = true;
	if (!is_new && row->public.order == t->order &&
	    target_labels_equal(row->public.labels, row->public.n_labels, labels, n)) {
		free(labels);
		return 0;
	}
	check(row->public.producer == u->producer && row->public.row == t->row);
	row->public.labels = labels;
	row->public.n_labels = n;
	row->public.order = t->order;
	row->public.fingerprint = t->fingerprint;
	fn(context, is_new ? TARGET_ADDED : TARGET_CHANGED, &row->public);
	free(row->labels);
	row->labels = labels;
	return 0;
}

static void remove_at(struct target_table *table, uint32_t at, target_change_fn fn, void *context)
{
	struct row *row = table->rows.p[at];
	uint32_t last = (uint32_t)table->rows.n - 1;

	check(at <= last);
	target_key_remove(&table->index, at, last, key_at, table->rows.p);
	table->rows.p[at] = table->rows.p[last];
	table->rows.n--;
	fn(context, TARGET_REMOVED, &row->public);
	row_free(row);
}

static void remove_unseen(struct target_table *table, uint64_t producer, target_change_fn fn,
			  void *context)
{
	for (size_t i = table->rows.n; i-- > 0;)
		if (table->rows.p[i]->public.producer == producer && !table->rows.p[i]->seen)
			remove_at(table, (uint32_t)i, fn, context);
}

static int apply_rows(struct target_table *table, const struct andiron_targets *u,
		      target_change_fn fn, void *context)
{
	bool snapshot = u->flags & ANDIRON_TARGETS_SNAPSHOT;
	int r = 0;

	if (snapshot)
		vec_each (&table->rows, row)
			(*row)->seen = false;
	for (uint64_t i = 0; i < u->n_rows && r == 0; i++)
		r = apply_row(table, u, &u->rows[i], fn, context);
	if (r < 0)
		return r;
	for (uint64_t i = 0; i < u->n_removed; i++) {
		uint32_t at = find(table, u->producer, u->removed[i]);

		if (at != INDEX_NONE)
			remove_at(table, at, fn, context);
	}
	if (snapshot)
		remove_unseen(table, u->producer, fn, context);
	return 0;
}

int target_table_apply(struct target_table *table, const struct andiron_targets *update,
		       target_change_fn fn, void *context)
{
	struct target_feed *feed = NULL;
	int r = target_feeds_take(&table->feeds, update, &feed);

	if (r < 0)
		return r;
	r = apply_rows(table, update, fn, context);
	if (r == 0)
		target_feed_took(feed, update);
	return r;
}

struct target_label *target_row_take_former(struct target_row *public)
{
	struct row *row = (struct row *)public; /* its first member */
	struct target_label *former = row->labels;

	row->labels = NULL;
	return former;
}

int target_row_compare(const struct target_row *a, const struct target_row *b)
{
	int order = compare(a->producer, b->producer) ?: compare(a->order, b->order);

	return order ?: compare(a->row, b->row);
}

static int by_order(const void *a, const void *b)
{
	return target_row_compare(&(*(struct row *const *)a)->public,
				  &(*(struct row *const *)b)->public);
}

void target_table_each(struct target_table *table, target_change_fn fn, void *context)
{
	struct row **sorted = malloc((table->rows.n + 1) * sizeof(struct row *));
	size_t n = table->rows.n;

	/* Short of memory the order is lost, never a row. */
	if (sorted && n) {
		memcpy(sorted, table->rows.p, n * sizeof(struct row *));
		qsort(sorted, n, sizeof(struct row *), by_order);
	}
	for (size_t i = 0; i < n; i++)
		fn(context, 0, &(sorted ? sorted[i] : table->rows.p[i])->public);
	free(sorted);
}

size_t target_table_count(const struct target_table *table)
{
	return table->rows.n;
}

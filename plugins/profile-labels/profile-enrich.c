/* SPDX-License-Identifier: Apache-2.0 */
/* See profile-enrich.h. */
#include "profile-labels/profile-enrich.h"

#include "abi/metrics.h"

#include <errno.h>
#include <stdlib.h>

int enrich_init(struct enrich *e, const struct abi_context *context)
{
	*e = (struct enrich){.context = *context, .work = LABELS_NULL};
	e->targets = target_table_new();
	return e->targets ? 0 : -ENOMEM;
}

void enrich_fini(struct enrich *e)
{
	target_table_free(e->targets);
	vec_free(&e->list);
	arena_free(&e->memory);
	labels_free(&e->work);
}

int enrich_set(struct enrich *e, const struct enrich_options *options)
{
	struct arena memory = ARENA_NULL;
	struct enrich_options copy = {arena_str(&memory, options->target_label),
				      arena_str(&memory, options->profile_label),
				      arena_array(&memory, struct str, options->n_copied + 1),
				      options->n_copied};
	bool whole = copy.target_label.p && copy.profile_label.p && copy.copied;

	for (size_t i = 0; whole && i < copy.n_copied; i++) {
		copy.copied[i] = arena_str(&memory, options->copied[i]);
		whole = copy.copied[i].p != NULL;
	}
	if (!whole) {
		arena_free(&memory);
		return -ENOMEM;
	}
	arena_free(&e->memory);
	e->memory = memory;
	e->options = copy;
	e->listed = false;
	return 0;
}

int enrich_set_args(struct enrich *e, const struct andiron_value *args)
{
	const struct andiron_value *copied = value_get(args, "labels_to_copy");
	struct enrich_options o = {.target_label = value_str(args, "target_match_label", STR("")),
				   .n_copied = copied ? copied->n_items : 0};
	int r;

	o.profile_label = value_str(args, "profiles_match_label", STR(""));
	if (!o.profile_label.n)
		o.profile_label = o.target_label;
	o.copied = calloc(o.n_copied + 1, sizeof(*o.copied));
	if (!o.copied)
		return -ENOMEM;
	for (size_t i = 0; i < o.n_copied; i++)
		o.copied[i] = abi_str(copied->items[i].string);
	r = enrich_set(e, &o);
	free(o.copied);
	return r;
}

static void nothing(void *context, int change, struct target_row *row)
{
}

void enrich_targets(void *self, const char *port, const struct andiron_targets *update)
{
	struct enrich *e = self;
	int r = target_table_apply(e->targets, update, nothing, NULL);

	e->listed = false;
	if (r == -ENOMEM)
		abi_health(&e->context, ANDIRON_HEALTH_UNHEALTHY,
			   "out of memory: some targets are not known");
	else if (r == -EINVAL)
		abi_log(&e->context, ANDIRON_LOG_ERROR,
			"a target update breaks the ABI and is ignored");
	else
		abi_health(&e->context, ANDIRON_HEALTH_HEALTHY, "adding labels of %zu targets",
			   target_table_count(e->targets));
}

static struct str value_of(const struct target_row *row, struct str name)
{
	for (uint32_t i = 0; i < row->n_labels; i++)
		if (str_eq(row->labels[i].name, name))
			return row->labels[i].value;
	return STR_NULL;
}

static void list_row(void *context, int change, struct target_row *row)
{
	struct enrich *e = context;
	struct enrich_entry entry = {value_of(row, e->options.target_label), e->list.n, row};

	if (entry.value.n)
		e->listed &= vec_push(&e->list, entry);
}

static int compare(const void *left, const void *right)
{
	const struct enrich_entry *a = left, *b = right;
	int r = str_cmp(a->value, b->value);

	return r ? r : a->order < b->order ? -1 : a->order > b->order;
}

static int list_targets(struct enrich *e)
{
	if (e->listed)
		return 0;
	e->list.n = 0;
	e->listed = true;
	target_table_each(e->targets, list_row, e);
	if (e->list.n)
		qsort(e->list.p, e->list.n, sizeof(*e->list.p), compare);
	return e->listed ? 0 : -ENOMEM;
}

/* The last target with that value, NULL: none. */
static const struct target_row *find(const struct enrich *e, struct str value)
{
	size_t low = 0, high = e->list.n;

	while (low < high) { /* the first entry that is greater */
		size_t middle = low + (high - low) / 2;

		if (str_cmp(e->list.p[middle].value, value) <= 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low && str_eq(e->list.p[low - 1].value, value) ? e->list.p[low - 1].row : NULL;
}

static int copy_all(const struct target_row *row, struct labels *labels)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < row->n_labels; i++)
		if (!str_starts(row->labels[i].name, STR("__")))
			r = labels_set(labels, row->labels[i].name, row->labels[i].value);
	return r;
}

static int add(void *context, struct labels *labels)
{
	struct enrich *e = context;
	struct str value = labels_get(labels, e->options.profile_label);
	const struct target_row *row = value.n ? find(e, value) : NULL;
	int r = 0;

	e->profiles++;
	e->enriched += row != NULL;
	if (row && !e->options.n_copied)
		return copy_all(row, labels);
	for (size_t i = 0; row && r == 0 && i < e->options.n_copied; i++) {
		struct str copied = value_of(row, e->options.copied[i]);

		if (copied.n)
			r = labels_set(labels, e->options.copied[i], copied);
	}
	return r;
}

int enrich_change(struct enrich *e, const struct andiron_batch *batch,
		  const struct andiron_batch **ret, struct profile_labels_totals *totals)
{
	int r = list_targets(e);

	memset(totals, 0, sizeof(*totals));
	return r < 0 ? r : profile_labels_change(batch, &e->work, add, e, ret, totals);
}

void enrich_batch(void *self, const struct andiron_batch *batch)
{
	struct enrich *e = self;
	const struct andiron_batch *changed = NULL;
	struct profile_labels_totals totals;
	int r = enrich_change(e, batch, &changed, &totals);

	profile_labels_send(&e->context, batch, r, changed, &totals);
}

void enrich_metrics(void *self, const struct andiron_metric_sink *sink)
{
	static const struct abi_metric_row rows[] = {
		{"andiron_enrich_profiles_total", ABI_COUNTER(struct enrich, profiles),
		 "Profiles that came in."},
		{"andiron_enrich_matched_profiles_total", ABI_COUNTER(struct enrich, enriched),
		 "Profiles for which there was a target."},
	};

	abi_metrics(sink, rows, sizeof(rows) / sizeof(*rows), self);
}

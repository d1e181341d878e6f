/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of profiles. A batch is built anew only when a group's labels differ: some pass as they
 * are. Which encoded profiles a group has is a list made once, since a stranger's push may have a
 * hundred thousand of both. Contract in profile-labels.h. */
#include "profile-labels/profile-labels.h"

#include "base/index.h"
#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>

struct label_list {
	struct target_label *p;
	size_t n, capacity;
};

struct change {
	const struct andiron_batch *batch;
	struct batch_view view;
	struct labels *work;
	struct str name; /* of all profiles; STR_NULL: they differ */
	/* The first encoded profile of a group, and the next of the same, counted from 1; 0: none.
	 */
	uint32_t *first, *next;
	struct label_list labels;
	VEC(uint32_t) attributes;
	struct batch_builder *builder;
	struct profile_labels_totals *totals;
};

static struct str only_name(const struct batch_view *v)
{
	uint64_t n = batch_count(v, ANDIRON_COL_TYPE);
	struct str name = n ? batch_str(v, batch_type(v, 0).name) : STR_NULL;

	for (uint32_t i = 1; i < n; i++)
		if (!str_eq(batch_str(v, batch_type(v, i).name), name))
			return STR_NULL;
	return name;
}

static int list_encoded(struct change *c)
{
	uint64_t n = batch_count(&c->view, ANDIRON_COL_ENCODED);

	c->first = calloc(batch_count(&c->view, ANDIRON_COL_GROUP) + 1, sizeof(*c->first));
	c->next = calloc(n + 1, sizeof(*c->next));
	if (!c->first || !c->next)
		return -ENOMEM;
	for (uint32_t i = (uint32_t)n; i > 0; i--) { /* so that each list is in order */
		uint32_t group = batch_encoded(&c->view, i - 1).group;

		c->next[i] = c->first[group];
		c->first[group] = i;
	}
	return 0;
}

/* A group's name that its profiles' types alone say. */
static struct str unsaid_name(const struct change *c, const struct andiron_group *g)
{
	struct str own;

	return g->n_rows && !batch_group_label(&c->view, g, STR("__name__"), &own) ? c->name
										   : STR_NULL;
}

static int read_labels(const struct change *c, const struct andiron_group *g,
		       struct label_list *list)
{
	uint64_t pool = batch_count(&c->view, ANDIRON_COL_ATTR_INDEX);

	if (g->label_start > pool || g->n_labels > pool - g->label_start)
		return -EINVAL;
	list->n = 0;
	for (uint32_t i = 0; i < g->n_labels; i++) {
		struct andiron_attribute a = batch_attribute_at(&c->view, g->label_start + i);
		struct target_label l = {batch_str(&c->view, a.key),
					 batch_str(&c->view, (uint32_t)a.value)};

		if (a.kind == ANDIRON_ATTRIBUTE_STRING && l.name.n && l.value.n &&
		    !vec_push(list, l))
			return -ENOMEM;
	}
	return 0;
}

/* The labels as they are now, sorted, without a name that is as it was. */
static int take_labels(struct change *c, const struct andiron_group *g)
{
	struct str unsaid = unsaid_name(c, g);

	c->labels.n = 0;
	vec_each (&c->work->entries, e) {
		bool same = unsaid.n && str_is(e->label.name, "__name__") &&
			    str_eq(e->label.value, unsaid);

		if (!same && !vec_push(&c->labels, e->label))
			return -ENOMEM;
	}
	if (c->labels.n)
		qsort(c->labels.p, c->labels.n, sizeof(*c->labels.p), target_label_compare);
	return 0;
}

static bool is_changed(const struct change *c, const struct andiron_group *g)
{
	if (c->labels.n != g->n_labels)
		return true;
	for (uint32_t i = 0; i < g->n_labels; i++) {
		struct andiron_attribute a = batch_attribute_at(&c->view, g->label_start + i);

		if (!str_eq(batch_str(&c->view, a.key), c->labels.p[i].name) ||
		    !str_eq(batch_str(&c->view, (uint32_t)a.value), c->labels.p[i].value))
			return true;
	}
	return false;
}

static uint64_t samples_of(const struct change *c, uint32_t group)
{
	struct andiron_group g = batch_group(&c->view, group);
	uint64_t sum = 0, rows = batch_count(&c->view, ANDIRON_COL_ROW);

	for (uint64_t i = g.row_start; i < (uint64_t)g.row_start + g.n_rows && i < rows; i++)
		sum += batch_row(&c->view, (uint32_t)i).samples;
	for (uint32_t i = c->first[group]; i; i = c->next[i])
		sum++;
	return sum;
}

/* Adds the group with these labels, and all that belongs to it. What fails within the builder is
 * remembered by it. */
static int keep(struct change *c, uint32_t group, const struct label_list *labels)
{
	struct andiron_group g = batch_group(&c->view, group);
	uint64_t rows = batch_count(&c->view, ANDIRON_COL_ROW);

	c->attributes.n = 0;
	vec_each (labels, l)
		if (!vec_push(&c->attributes,
			      batch_add_str_attribute(c->builder, l->name, l->value)))
			return -ENOMEM;
	if (batch_group_begin(c->builder, c->attributes.p, (uint32_t)c->attributes.n) == INDEX_NONE)
		return -ENOMEM;
	for (uint64_t i = g.row_start; i < (uint64_t)g.row_start + g.n_rows && i < rows; i++) {
		struct andiron_row row = batch_row(&c->view, (uint32_t)i);

		batch_add_row(c->builder, &row);
	}
	for (uint32_t i = c->first[group]; i; i = c->next[i]) {
		struct andiron_encoded e = batch_encoded(&c->view, i - 1);

		batch_keep_encoded(c->builder, &e);
	}
	return 0;
}

/* Begins the new batch with the groups before `group`, which are as they were. */
static int begin(struct change *c, uint32_t group)
{
	struct label_list labels = {0};
	int r = 0;

	c->builder = batch_regroup(c->batch);
	if (!c->builder)
		return -ENOMEM;
	for (uint32_t i = 0; i < group && r == 0; i++) {
		struct andiron_group g = batch_group(&c->view, i);

		r = read_labels(c, &g, &labels);
		if (r == 0)
			r = keep(c, i, &labels);
	}
	vec_free(&labels);
	return r;
}

/* What `fn` says to the group's labels. */
static int ask(struct change *c, const struct andiron_group *g, profile_labels_fn fn, void *context)
{
	struct target_label name = {STR("__name__"), unsaid_name(c, g)};
	int r = read_labels(c, g, &c->labels);

	if (r == 0 && name.value.n && !vec_push(&c->labels, name))
		r = -ENOMEM;
	if (r == 0)
		r = labels_begin(c->work, c->labels.p, c->labels.n);
	return r == 0 ? fn(context, c->work) : r;
}

static int change_group(struct change *c, uint32_t group, profile_labels_fn fn, void *context)
{
	struct andiron_group g = batch_group(&c->view, group);
	int answer = ask(c, &g, fn, context), r = 0;

	if (answer < 0 && answer != -E2BIG)
		return answer;
	if (answer == 0)
		r = take_labels(c, &g);
	if (r == 0 && !c->builder && (answer || is_changed(c, &g)))
		r = begin(c, group);
	if (r == 0 && answer == 0 && c->builder)
		r = keep(c, group, &c->labels);
	if (answer == -E2BIG)
		c->totals->large += samples_of(c, group);
	else if (answer)
		c->totals->dropped += samples_of(c, group);
	c->totals->groups++;
	c->totals->kept += answer == 0;
	return r;
}

static int finish(struct change *c, const struct andiron_batch **ret)
{
	static const struct batch_head head; /* as the parent's */
	struct batch_builder *b = c->builder;

	c->builder = NULL;
	if (b && c->totals->kept)
		return batch_finish(b, &head, ret);
	batch_builder_free(b);
	*ret = b ? NULL : c->batch;
	if (!b)
		batch_retain(c->batch);
	return 0;
}

int profile_labels_change(const struct andiron_batch *batch, struct labels *work,
			  profile_labels_fn fn, void *context, const struct andiron_batch **ret,
			  struct profile_labels_totals *totals)
{
	struct change c = {.batch = batch, .work = work, .totals = totals};
	int r = batch_view_init(&c.view, batch);

	memset(totals, 0, sizeof(*totals));
	if (r == 0)
		r = list_encoded(&c);
	c.name = r == 0 ? only_name(&c.view) : STR_NULL;
	for (uint32_t i = 0; r == 0 && i < batch_count(&c.view, ANDIRON_COL_GROUP); i++)
		r = change_group(&c, i, fn, context);
	if (r == 0)
		r = finish(&c, ret);
	batch_builder_free(c.builder);
	free(c.first);
	free(c.next);
	vec_free(&c.labels);
	vec_free(&c.attributes);
	return r;
}

void profile_labels_send(const struct abi_context *c, const struct andiron_batch *batch, int r,
			 const struct andiron_batch *changed,
			 const struct profile_labels_totals *totals)
{
	if (r < 0) {
		abi_ledger(c, ANDIRON_LEDGER_DROPPED, r == -ENOMEM ? "no_memory" : "malformed",
			   batch->samples);
		return;
	}
	if (totals->dropped)
		abi_ledger(c, ANDIRON_LEDGER_DROPPED, "relabeled", totals->dropped);
	if (totals->large)
		abi_ledger(c, ANDIRON_LEDGER_DROPPED, "labels_too_large", totals->large);
	if (!changed)
		return;
	c->host->send_batch(c->instance, changed);
	batch_release(changed);
}

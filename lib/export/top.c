/* SPDX-License-Identifier: Apache-2.0 */
/* Top functions and labels. Contract in top.h. */
#include "export/top.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/search.h"

#include <errno.h>
#include <stdlib.h>

/* One entry for each of n ids, and the sums. */
static int begin(const struct call_tree *t, size_t n, struct top *ret)
{
	*ret = (struct top){.entries = calloc(n + 1, sizeof(*ret->entries)), .n = n};
	if (!ret->entries)
		return -ENOMEM;
	vec_each (&t->counts, count) {
		ret->sum = pprof_sum(ret->sum, count->value);
		ret->samples = pprof_sum(ret->samples, count->samples);
	}
	if (t->no_samples)
		ret->samples = -1;
	return 0;
}

/* Drops the entries that no sample has reached. */
static void end(struct top *t, const uint32_t *reached)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		if (reached[i])
			t->entries[n++] = t->entries[i];
	t->n = n;
}

int top_build(const struct call_tree *t, struct top *ret)
{
	size_t n = t->frames.ends.n;
	_cleanup_(freep) uint32_t *reached = calloc(n, sizeof(*reached)); /* 1 + the last leaf */

	if (!reached || begin(t, n, ret) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		ret->entries[i].name = intern_get(&t->strings, call_tree_frame(t, i)->name);
		ret->entries[i].module = intern_get(&t->strings, call_tree_frame(t, i)->module);
		ret->entries[i].source = intern_get(&t->strings, call_tree_frame(t, i)->source);
	}
	for (uint32_t i = 0; i < t->counts.n; i++) {
		uint32_t node = call_tree_leaf(t, i)->node;
		int64_t value = t->counts.p[i].value;
		struct top_entry *leaf = &ret->entries[call_tree_node(t, node)->frame];

		leaf->self = pprof_sum(leaf->self, value);
		while (node) {
			const struct node *step = call_tree_node(t, node);
			struct top_entry *entry = &ret->entries[step->frame];

			check(step->parent < node);
			if (reached[step->frame] != i + 1)
				entry->total = pprof_sum(entry->total, value);
			reached[step->frame] = i + 1;
			node = step->parent;
		}
	}
	end(ret, reached);
	return 0;
}

int top_build_by(const struct call_tree *t, struct str key, struct top *ret)
{
	size_t n = t->strings.strings.n;
	_cleanup_(freep) uint32_t *reached = calloc(n + 1, sizeof(*reached));
	uint32_t id = call_tree_key(t, key);

	if (!reached || begin(t, n, ret) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; id && i < t->counts.n; i++) {
		uint32_t value = call_tree_label(t, call_tree_leaf(t, i)->labels, id);
		struct top_entry *entry = &ret->entries[value];

		reached[value] = 1;
		entry->name = intern_get(&t->strings, value);
		entry->total = pprof_sum(entry->total, t->counts.p[i].value);
	}
	end(ret, reached);
	return 0;
}

void top_fini(struct top *t)
{
	free(t->entries);
	*t = (struct top){0};
}

static int by_name(const struct top_entry *a, const struct top_entry *b)
{
	return str_cmp(a->name, b->name) ?: str_cmp(a->module, b->module)
						 ?: str_cmp(a->source, b->source);
}

static int by_self(const void *pa, const void *pb)
{
	const struct top_entry *a = pa, *b = pb;

	return compare(b->self, a->self) ?: by_name(a, b);
}

static int by_total(const void *pa, const void *pb)
{
	const struct top_entry *a = pa, *b = pb;

	return compare(b->total, a->total) ?: by_name(a, b);
}

void top_sort_by_self(struct top *t)
{
	if (t->n)
		qsort(t->entries, t->n, sizeof(*t->entries), by_self);
}

void top_sort_by_total(struct top *t)
{
	if (t->n)
		qsort(t->entries, t->n, sizeof(*t->entries), by_total);
}

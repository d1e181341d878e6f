/* SPDX-License-Identifier: Apache-2.0 */
/* Top functions. Contract in top.h. */
#include "pprof/top.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/index.h"
#include "base/vec.h"

#include <errno.h>
#include <stdlib.h>

struct builder {
	const struct profile *p;
	VEC(struct top_entry) entries;
	struct index index;
	uint32_t *of_line;     /* the entry of each line */
	uint32_t *of_location; /* and of each location without lines */
	uint32_t *seen;        /* by entry: 1 + the sample that counted it last */
};

struct probe {
	const struct builder *b;
	struct str name, module;
};

static bool same(const void *context, uint32_t position)
{
	const struct probe *probe = context;
	const struct top_entry *e = &probe->b->entries.p[position];

	return str_eq(e->name, probe->name) && str_eq(e->module, probe->module);
}

static uint32_t add_entry(struct builder *b, struct str name, struct str module)
{
	struct probe probe = {b, name, module};
	uint64_t hash = hash_mix(hash_str(name), hash_str(module));
	uint32_t id = index_find(&b->index, hash, same, &probe);

	if (id != INDEX_NONE)
		return id;
	id = (uint32_t)b->entries.n;
	if (!vec_reserve(&b->entries, 1) || index_add(&b->index, hash, id) < 0)
		return INDEX_NONE;
	b->entries.p[b->entries.n++] = (struct top_entry){.name = name, .module = module};
	return id;
}

static int name_frames(struct builder *b)
{
	for (size_t i = 1; i < b->p->n_locations; i++) { /* 0 is the null entry */
		const struct profile_location *l = &b->p->locations[i];
		struct str module = b->p->mappings[l->mapping].file;

		for (uint32_t k = l->line_start; k < l->line_start + l->n_lines; k++) {
			struct str name = b->p->functions[b->p->lines[k].function].name;

			b->of_line[k] = add_entry(b, name, module);
			if (b->of_line[k] == INDEX_NONE)
				return -ENOMEM;
		}
		if (l->n_lines)
			continue;
		b->of_location[i] = add_entry(b, STR(""), module);
		if (b->of_location[i] == INDEX_NONE)
			return -ENOMEM;
	}
	return 0;
}

static int64_t add_saturating(int64_t a, int64_t b)
{
	int64_t sum;

	if (__builtin_add_overflow(a, b, &sum))
		return b < 0 ? INT64_MIN : INT64_MAX;
	return sum;
}

static void count(struct builder *b, uint32_t entry, size_t sample, int64_t value)
{
	if (b->seen[entry] == sample + 1)
		return;
	b->seen[entry] = (uint32_t)sample + 1;
	b->entries.p[entry].total = add_saturating(b->entries.p[entry].total, value);
}

static void count_sample(struct builder *b, size_t index, int64_t value)
{
	const struct profile_sample *s = &b->p->samples[index];
	uint32_t leaf = INDEX_NONE;

	for (uint32_t i = 0; i < s->n_frames; i++) {
		uint32_t location = b->p->frames[s->frame_start + i];
		const struct profile_location *l = &b->p->locations[location];

		if (i == 0)
			leaf = l->n_lines ? b->of_line[l->line_start] : b->of_location[location];
		if (l->n_lines == 0)
			count(b, b->of_location[location], index, value);
		for (uint32_t k = 0; k < l->n_lines; k++)
			count(b, b->of_line[l->line_start + k], index, value);
	}
	if (leaf != INDEX_NONE)
		b->entries.p[leaf].self = add_saturating(b->entries.p[leaf].self, value);
}

static int build(struct builder *b, size_t type, struct top *t)
{
	size_t sample_type = b->p->n_types;

	for (size_t k = 0; k < b->p->n_types; k++)
		if (str_is(b->p->types[k].type, "samples") && str_is(b->p->types[k].unit, "count"))
			sample_type = k;
	if (name_frames(b) < 0)
		return -ENOMEM;
	b->seen = calloc(b->entries.n + 1, sizeof(*b->seen));
	if (!b->seen)
		return -ENOMEM;
	t->samples = sample_type < b->p->n_types ? 0 : -1;
	for (size_t i = 0; i < b->p->n_samples; i++) {
		const int64_t *values = b->p->values + i * b->p->n_types;

		t->sum = add_saturating(t->sum, values[type]);
		if (sample_type < b->p->n_types)
			t->samples = add_saturating(t->samples, values[sample_type]);
		count_sample(b, i, values[type]);
	}
	return 0;
}

int top_build(const struct profile *p, size_t type, struct top *ret)
{
	struct builder b = {.p = p};
	struct top t = {0};
	int r = -ENOMEM;

	b.of_line = calloc(p->n_lines + 1, sizeof(*b.of_line));
	b.of_location = calloc(p->n_locations + 1, sizeof(*b.of_location));
	if (b.of_line && b.of_location)
		r = build(&b, type, &t);
	if (r == 0) {
		t.entries = take_ptr(b.entries.p);
		t.n = b.entries.n;
		*ret = t;
	}
	vec_free(&b.entries);
	index_free(&b.index);
	free(b.of_line);
	free(b.of_location);
	free(b.seen);
	return r;
}

void top_fini(struct top *t)
{
	free(t->entries);
	*t = (struct top){0};
}

static int by_name(const struct top_entry *a, const struct top_entry *b)
{
	int order = str_cmp(a->name, b->name);

	return order ? order : str_cmp(a->module, b->module);
}

static int by_self(const void *pa, const void *pb)
{
	const struct top_entry *a = pa, *b = pb;

	if (a->self != b->self)
		return a->self > b->self ? -1 : 1;
	return by_name(a, b);
}

static int by_total(const void *pa, const void *pb)
{
	const struct top_entry *a = pa, *b = pb;

	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	return by_name(a, b);
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

/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles put behind one another. Contract in merge.h. */
#include "pprof/merge.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "pprof/encode.h"
#include "pprof/owned.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NO_TYPE SIZE_MAX

struct window {
	int64_t start, end;
};

static size_t find_type(const struct profile *p, const struct profile_type *type)
{
	for (size_t i = 0; i < p->n_types; i++)
		if (str_eq(p->types[i].type, type->type) && str_eq(p->types[i].unit, type->unit))
			return i;
	return NO_TYPE;
}

static bool all_have(struct profile *const *parts, size_t n, const struct profile_type *type)
{
	for (size_t i = 0; i < n; i++)
		if (find_type(parts[i], type) == NO_TYPE)
			return false;
	return true;
}

int profile_show_like(struct profile *p, const char *name, const struct profile *like,
		      const char *like_name, struct error *err)
{
	const struct profile_type *a = &like->types[like->default_type];
	const struct profile_type *b = &p->types[p->default_type];
	size_t type = find_type(p, a);

	if (type == NO_TYPE)
		return error_set(err, -EINVAL,
				 "%s shows %.*s in %.*s, which %s does not have: it shows %.*s in "
				 "%.*s; take files of one kind",
				 like_name, STR_FMT(str_first(a->type, 40)),
				 STR_FMT(str_first(a->unit, 40)), name,
				 STR_FMT(str_first(b->type, 40)), STR_FMT(str_first(b->unit, 40)));
	p->default_type = type;
	return 0;
}

/* Sums of the parts' counts, so that each array is made once. */
static bool count(struct profile *const *parts, size_t n, struct profile *sum)
{
	for (size_t i = 0; i < n; i++) {
		const struct profile *p = parts[i];

		sum->n_functions += p->n_functions;
		sum->n_mappings += p->n_mappings;
		sum->n_lines += p->n_lines;
		sum->n_locations += p->n_locations;
		sum->n_frames += p->n_frames;
		sum->n_labels += p->n_labels;
		sum->n_samples += p->n_samples;
		sum->n_comments += p->n_comments;
	}
	return sum->n_functions < UINT32_MAX && sum->n_mappings < UINT32_MAX &&
	       sum->n_lines < UINT32_MAX && sum->n_locations < UINT32_MAX &&
	       sum->n_frames < UINT32_MAX && sum->n_labels < UINT32_MAX &&
	       sum->n_samples < UINT32_MAX;
}

static bool make_arrays(struct arena *a, struct profile *p, const struct profile *sum)
{
	p->types = arena_array(a, struct profile_type, sum->n_types);
	p->functions = arena_array(a, struct profile_function, sum->n_functions);
	p->mappings = arena_array(a, struct profile_mapping, sum->n_mappings);
	p->lines = arena_array(a, struct profile_line, sum->n_lines);
	p->locations = arena_array(a, struct profile_location, sum->n_locations);
	p->frames = arena_array(a, uint32_t, sum->n_frames);
	p->labels = arena_array(a, struct profile_label, sum->n_labels);
	p->samples = arena_array(a, struct profile_sample, sum->n_samples);
	p->values = arena_array(a, int64_t, sum->n_samples * sum->n_types);
	p->comments = arena_array(a, struct str, sum->n_comments);
	return p->types && p->functions && p->mappings && p->lines && p->locations && p->frames &&
	       p->labels && p->samples && p->values && p->comments;
}

/* Position 0 of each table is the null entry, of which one is enough. */
static uint32_t moved(uint32_t id, size_t base)
{
	return id ? (uint32_t)(id - 1 + base) : 0;
}

static void append_tables(struct profile *to, const struct profile *p)
{
	for (size_t i = 0; i < p->n_lines; i++)
		to->lines[to->n_lines + i] = (struct profile_line){
			moved(p->lines[i].function, to->n_functions), p->lines[i].line};
	for (size_t i = 1; i < p->n_locations; i++) {
		struct profile_location *l = &to->locations[to->n_locations + i - 1];

		*l = p->locations[i];
		l->mapping = moved(l->mapping, to->n_mappings);
		l->line_start += (uint32_t)to->n_lines;
	}
	for (size_t i = 0; i < p->n_frames; i++)
		to->frames[to->n_frames + i] = moved(p->frames[i], to->n_locations);
	for (size_t i = 1; i < p->n_functions; i++)
		to->functions[to->n_functions++] = p->functions[i];
	for (size_t i = 1; i < p->n_mappings; i++)
		to->mappings[to->n_mappings++] = p->mappings[i];
	for (size_t i = 0; i < p->n_comments; i++)
		to->comments[to->n_comments++] = p->comments[i];
	to->n_lines += p->n_lines;
	to->n_locations += p->n_locations - 1;
}

static void append_samples(struct profile *to, const struct profile *p)
{
	for (size_t i = 0; i < p->n_samples; i++) {
		struct profile_sample *s = &to->samples[to->n_samples++];

		*s = p->samples[i];
		s->frame_start += (uint32_t)to->n_frames;
		s->label_start += (uint32_t)to->n_labels;
		for (size_t t = 0; t < to->n_types; t++)
			to->values[to->n_values++] =
				p->values[i * p->n_types + find_type(p, &to->types[t])];
	}
	for (size_t i = 0; i < p->n_labels; i++)
		to->labels[to->n_labels++] = p->labels[i];
	to->n_frames += p->n_frames;
}

static int by_start(const void *x, const void *y)
{
	const struct window *a = x, *b = y;

	return compare(a->start, b->start);
}

/* How long at least one of the windows was open, from the earliest on. */
static void put_time(struct profile *p, struct window *windows, size_t n, bool dated)
{
	int64_t until = INT64_MIN;

	qsort(windows, n, sizeof(*windows), by_start);
	p->time_ns = dated ? windows[0].start : 0;
	for (size_t i = 0; i < n; i++) {
		const struct window *w = &windows[i];
		int64_t start = !dated || w->start > until ? w->start : until;

		if (w->end > start)
			p->duration_ns = pprof_sum(p->duration_ns, w->end - start);
		until = w->end > until ? w->end : until;
	}
}

static void put_head(struct profile *to, struct profile *const *parts, size_t n,
		     struct window *windows)
{
	bool dated = true;

	to->period = parts[0]->period;
	to->period_type = parts[0]->period_type;
	for (size_t i = 0; i < n; i++) {
		const struct profile *p = parts[i];
		int64_t length = p->duration_ns > 0 ? p->duration_ns : 0;

		dated = dated && p->time_ns > 0;
		windows[i] = (struct window){p->time_ns, pprof_sum(p->time_ns, length)};
		if (p->period != to->period || !str_eq(p->period_type.type, to->period_type.type) ||
		    !str_eq(p->period_type.unit, to->period_type.unit))
			to->period = 0;
	}
	put_time(to, windows, n, dated);
}

static int merge(struct owned_profile *owned, struct profile **parts, const char *const *names,
		 size_t n, struct error *err)
{
	_cleanup_(freep) struct window *windows = calloc(n, sizeof(*windows));
	struct profile sum = {.n_types = parts[0]->n_types}, *p = &owned->profile;
	const struct profile *first = parts[0];
	int r = 0;

	for (size_t i = 1; i < n && r == 0; i++)
		r = profile_show_like(parts[i], names[i], first, names[0], err);
	if (r < 0)
		return r;
	if (!count(parts, n, &sum))
		return error_set(err, -E2BIG,
				 "the files are too large to be one profile; take fewer at once");
	if (!windows || !make_arrays(&owned->memory, p, &sum))
		return -ENOMEM;
	for (size_t i = 0; i < first->n_types; i++) {
		if (i == first->default_type)
			p->default_type = p->n_types;
		if (all_have(parts, n, &first->types[i]))
			p->types[p->n_types++] = first->types[i];
	}
	p->functions[0] = first->functions[0];
	p->mappings[0] = first->mappings[0];
	p->n_functions = p->n_mappings = p->n_locations = 1;
	put_head(p, parts, n, windows);
	for (size_t i = 0; i < n; i++) {
		append_tables(p, parts[i]);
		append_samples(p, parts[i]);
	}
	check(p->n_values == p->n_types * p->n_samples);
	return 0;
}

int profile_merge(struct profile **parts, const char *const *names, size_t n, struct profile **ret,
		  struct error *err)
{
	struct arena memory = ARENA_NULL;
	struct owned_profile *owned;
	int r = -ENOMEM;

	check(n > 0);
	if (n == 1) {
		*ret = parts[0];
		parts[0] = NULL;
		return 0;
	}
	owned = arena_array(&memory, struct owned_profile, 1);
	if (owned) {
		owned->memory = memory;
		r = merge(owned, parts, names, n, err);
		memory = owned->memory;
	}
	for (size_t i = 0; i < n; i++) {
		if (r == 0) /* their texts live on in it */
			arena_join(&memory, &((struct owned_profile *)parts[i])->memory);
		else
			profile_free(parts[i]);
		parts[i] = NULL;
	}
	if (r < 0) {
		arena_free(&memory);
		return r;
	}
	owned->memory = memory;
	*ret = &owned->profile;
	return 0;
}

bool profile_cpu_time(const struct profile *p, int64_t *ret_ns)
{
	static const struct profile_type time = {{"cpu", 3}, {"nanoseconds", 11}};
	static const struct profile_type counts = {{"samples", 7}, {"count", 5}};
	size_t type = find_type(p, &time);
	int64_t factor = 1, sum = 0;

	if (type == NO_TYPE) {
		if (!str_eq(p->period_type.type, time.type) ||
		    !str_eq(p->period_type.unit, time.unit) || p->period <= 0)
			return false;
		type = find_type(p, &counts);
		factor = p->period;
	}
	if (type == NO_TYPE)
		return false;
	for (size_t i = 0; i < p->n_samples; i++)
		sum = pprof_sum(sum, p->values[i * p->n_types + type]);
	if (__builtin_mul_overflow(sum, factor, ret_ns))
		*ret_ns = INT64_MAX;
	return true;
}

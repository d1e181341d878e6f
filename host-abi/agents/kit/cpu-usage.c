/* SPDX-License-Identifier: Apache-2.0 */
/* See cpu-usage.h. A sum's key is its two names, as they are reported: targets whose names become
 * the same are one. */
#include "agents/kit/cpu-usage.h"

#include "abi/batch-view.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/index.h"
#include "base/vec.h"

#include <errno.h>

#define IDLE_NS (600 * NS_PER_SEC)

struct series {
	char *service, *target;
	int64_t cpu_ns;
	int64_t sampled_ns, reported_ns; /* ends of batches */
};

struct cpu_usage {
	char *const *labels;
	size_t n_labels;
	uint32_t max_series;
	VEC(struct series) series;
	struct index index;
	struct buf service, target; /* names being made */
};

struct key {
	const struct cpu_usage *usage;
	struct str service, target;
};

struct cpu_usage *cpu_usage_new(char *const *labels, size_t n_labels, uint32_t max_series)
{
	struct cpu_usage *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	u->labels = labels;
	u->n_labels = n_labels;
	u->max_series = max_series;
	return u;
}

static void series_free(struct series *s)
{
	free(s->service);
	free(s->target);
}

void cpu_usage_free(struct cpu_usage *u)
{
	if (!u)
		return;
	vec_each (&u->series, s)
		series_free(s);
	vec_free(&u->series);
	index_free(&u->index);
	buf_free(&u->service);
	buf_free(&u->target);
	free(u);
}

/* --- Names --- */

static void put_name(struct buf *b, struct str text)
{
	for (size_t i = 0; i < text.n; i++) {
		unsigned char c = (unsigned char)text.p[i];

		buf_putc(b, c < ' ' || c == '/' || c == 0x7f ? '_' : (char)c);
	}
}

/* What is too long keeps its beginning, and a hash that tells it from others; a cut within a
 * character of UTF-8 leaves none of it. */
static void shorten(struct buf *b)
{
	uint32_t hash = 2166136261u; /* FNV-1a: the same in each run */
	size_t keep = CPU_USAGE_NAME - 9;

	if (b->failed || b->n <= CPU_USAGE_NAME)
		return;
	for (size_t i = 0; i < b->n; i++)
		hash = (hash ^ (unsigned char)b->p[i]) * 16777619u;
	while (keep > 0 && ((unsigned char)b->p[keep] & 0xc0) == 0x80)
		keep--;
	b->n = keep;
	buf_printf(b, "~%08x", hash);
}

static void put_label(struct buf *b, struct str name, struct str value)
{
	if (value.n == 0)
		return;
	if (b->n > 0)
		buf_putc(b, ',');
	if (name.n > 0) {
		put_name(b, name);
		buf_putc(b, '=');
	}
	put_name(b, value);
}

static void put_all_labels(struct buf *b, const struct batch_view *view,
			   const struct andiron_group *g)
{
	for (uint32_t i = 0; i < g->n_labels; i++) {
		struct andiron_attribute a = batch_attribute_at(view, g->label_start + i);
		struct str name = batch_str(view, a.key);

		if (a.kind == ANDIRON_ATTRIBUTE_STRING && !str_starts(name, STR("__")) &&
		    !str_is(name, "service_name"))
			put_label(b, name, batch_str(view, (uint32_t)a.value));
	}
}

/* The names of a group: false when memory was short. */
static bool name_group(struct cpu_usage *u, const struct batch_view *view,
		       const struct andiron_group *g)
{
	struct str value = STR_NULL;

	buf_clear(&u->service);
	buf_clear(&u->target);
	if (!batch_group_label(view, g, STR("service_name"), &value) || value.n == 0)
		value = STR("unknown");
	put_name(&u->service, value);
	for (size_t i = 0; i < u->n_labels; i++)
		if (batch_group_label(view, g, str_of(u->labels[i]), &value))
			put_label(&u->target, STR_NULL, value);
	if (u->n_labels == 0)
		put_all_labels(&u->target, view, g);
	shorten(&u->service);
	shorten(&u->target);
	return !u->service.failed && !u->target.failed;
}

/* --- Sums --- */

static uint64_t hash_names(struct str service, struct str target)
{
	return hash_mix(hash_str(service), hash_str(target));
}

static bool same(const void *context, uint32_t position)
{
	const struct key *key = context;
	const struct series *s = &key->usage->series.p[position];

	return str_is(key->service, s->service) && str_is(key->target, s->target);
}

static struct series *find(const struct cpu_usage *u, struct str service, struct str target)
{
	const struct key key = {u, service, target};
	uint32_t i = index_find(&u->index, hash_names(service, target), same, &key);

	return i == INDEX_NONE ? NULL : &u->series.p[i];
}

static struct series *add(struct cpu_usage *u, struct str service, struct str target)
{
	struct series s = {.service = str_dup(service), .target = str_dup(target)};

	if (s.service && s.target && vec_push(&u->series, s)) {
		if (index_add(&u->index, hash_names(service, target), (uint32_t)u->series.n - 1) ==
		    0)
			return &u->series.p[u->series.n - 1];
		u->series.n--;
	}
	series_free(&s);
	return NULL;
}

static int count(struct cpu_usage *u, struct str service, struct str target, int64_t cpu_ns,
		 int64_t end_ns)
{
	struct series *s = find(u, service, target);

	if (!s && u->series.n >= u->max_series) {
		if (target.n > 0)
			return 0; /* its service has it */
		service = STR("other");
		s = find(u, service, STR(""));
	}
	if (!s)
		s = add(u, service, target);
	if (!s)
		return -ENOMEM;
	if (__builtin_add_overflow(s->cpu_ns, cpu_ns, &s->cpu_ns))
		s->cpu_ns = cpu_ns;
	s->sampled_ns = end_ns;
	return 0;
}

static bool is_cpu_time(const struct batch_view *view, uint32_t type)
{
	struct andiron_profile_type t = batch_type(view, type);

	return str_is(batch_str(view, t.name), "process_cpu") &&
	       str_is(batch_str(view, t.unit), "nanoseconds");
}

static int64_t group_cpu_ns(const struct batch_view *view, const struct andiron_group *g)
{
	uint64_t n = batch_count(view, ANDIRON_COL_ROW);
	int64_t sum = 0;

	for (uint32_t i = 0; i < g->n_rows && i < n; i++) {
		struct andiron_row row = batch_row(view, g->row_start + i);

		if (row.value > 0 && is_cpu_time(view, row.type) &&
		    __builtin_add_overflow(sum, row.value, &sum))
			return INT64_MAX;
	}
	return sum;
}

static int add_group(struct cpu_usage *u, const struct batch_view *view, uint32_t i)
{
	struct andiron_group g = batch_group(view, i);
	int64_t cpu_ns = group_cpu_ns(view, &g), end = view->batch->end_ns;
	int r = 0;

	if (cpu_ns == 0)
		return 0;
	if (!name_group(u, view, &g))
		return -ENOMEM;
	r = count(u, buf_str(&u->service), STR(""), cpu_ns, end);
	if (r == 0 && u->target.n > 0)
		r = count(u, buf_str(&u->service), buf_str(&u->target), cpu_ns, end);
	return r;
}

/* --- Reports --- */

static void report_all(struct cpu_usage *u, const struct andiron_batch *batch, cpu_usage_fn report,
		       void *context)
{
	int64_t length = batch->end_ns - batch->start_ns;

	vec_each (&u->series, s) {
		struct cpu_usage_sum sum = {s->service, s->target, s->cpu_ns, batch->end_ns,
					    length};
		int64_t due = s->reported_ns +
			      (s->sampled_ns == batch->end_ns ? 0 : length + length / 2);

		if (batch->end_ns <= due)
			continue;
		s->reported_ns = batch->end_ns;
		report(context, &sum);
	}
}

static uint64_t series_hash(const struct series *s)
{
	return hash_names(str_of(s->service), str_of(s->target));
}

static void forget_idle(struct cpu_usage *u, int64_t end_ns)
{
	for (size_t i = u->series.n; i-- > 0;) {
		struct series *s = &u->series.p[i], *last = &u->series.p[u->series.n - 1];

		if (end_ns - s->sampled_ns <= IDLE_NS)
			continue;
		index_remove(&u->index, series_hash(s), (uint32_t)i);
		if (s != last)
			index_move(&u->index, series_hash(last), (uint32_t)u->series.n - 1,
				   (uint32_t)i);
		series_free(s);
		*s = *last;
		u->series.n--;
	}
}

int cpu_usage_add(struct cpu_usage *u, const struct andiron_batch *batch, cpu_usage_fn report,
		  void *context)
{
	struct batch_view view;
	int r = batch_view_init(&view, batch);
	uint64_t n = r == 0 ? batch_count(&view, ANDIRON_COL_GROUP) : 0;

	if (r < 0)
		return r;
	forget_idle(u, batch->end_ns);
	for (uint32_t i = 0; i < n && r == 0; i++)
		r = add_group(u, &view, i);
	report_all(u, batch, report, context);
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Pulling and printing metrics. Contracts in metrics.h. */
#include "host/report/metrics.h"

#include "base/ascii.h"
#include "base/check.h"
#include "base/hash.h"
#include "host/state.h"
#include "host/report/escape.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>

static void series_fini(struct component_metrics *c)
{
	vec_free(&c->series);
	arena_free(&c->arena);
}

static void component_fini(struct component_metrics *c)
{
	free(c->component);
	series_fini(c);
}

void metrics_free(struct metrics *m)
{
	vec_each (&m->components, c)
		component_fini(c);
	vec_free(&m->components);
	index_free(&m->by_name);
}

struct sought {
	const struct metrics *m;
	const char *component;
};

static bool is_named(const void *context, uint32_t position)
{
	const struct sought *sought = context;

	return strcmp(sought->m->components.p[position].component, sought->component) == 0;
}

static uint32_t find(const struct metrics *m, const char *component)
{
	struct sought sought = {m, component};

	return index_find(&m->by_name, hash_str(str_of(component)), is_named, &sought);
}

static struct component_metrics *get(struct metrics *m, const char *component)
{
	uint32_t at = find(m, component);

	check(at != INDEX_NONE);
	return &m->components.p[at];
}

int metrics_enter(struct metrics *m, const char *component)
{
	struct component_metrics fresh = {.n_instances = 1};
	uint32_t at = find(m, component);

	if (at != INDEX_NONE) {
		m->components.p[at].n_instances++;
		return 0;
	}
	at = (uint32_t)m->components.n;
	fresh.component = str_dup(str_of(component));
	if (fresh.component && vec_reserve(&m->components, 1) &&
	    index_add(&m->by_name, hash_str(str_of(component)), at) == 0) {
		m->components.p[m->components.n++] = fresh;
		return 0;
	}
	free(fresh.component);
	return -ENOMEM;
}

void metrics_leave(struct metrics *m, const char *component, bool forget)
{
	struct component_metrics *c = get(m, component);
	uint32_t at = (uint32_t)(c - m->components.p), last = (uint32_t)m->components.n - 1;

	if (--c->n_instances > 0 || !forget)
		return;
	index_remove(&m->by_name, hash_str(str_of(component)), at);
	component_fini(c);
	m->components.n = last;
	if (at == last)
		return;
	*c = m->components.p[last];
	index_move(&m->by_name, hash_str(str_of(c->component)), last, at);
}

/* [a-zA-Z_:][a-zA-Z0-9_:]*, the colon for names only. */
static bool valid_name(struct str s, bool label)
{
	if (s.n == 0 || ascii_is_digit(s.p[0]))
		return false;
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (!ascii_is_alnum(c) && c != '_' && (c != ':' || label))
			return false;
	}
	return true;
}

struct pulling {
	struct component_metrics fresh;
	bool failed;
};

static const char *labels_text(struct pulling *p, const struct andiron_metric *metric)
{
	struct buf out = BUF_NULL;
	struct str copy = STR_NULL;

	buf_str_append(&out, STR("{component_id="));
	text_label(&out, str_of(p->fresh.component));
	for (uint32_t i = 0; i < metric->n_labels; i++) {
		const struct andiron_kv *kv = &metric->labels[i];
		struct str key = {kv->key.ptr, kv->key.len};

		if (!valid_name(key, true))
			continue;
		buf_printf(&out, ",%.*s=", STR_FMT(key));
		text_label(&out, (struct str){kv->value.ptr, kv->value.len});
	}
	buf_putc(&out, '}');
	if (!out.failed)
		copy = arena_str(&p->fresh.arena, buf_str(&out));
	buf_free(&out);
	return copy.p;
}

static void add(void *self, const struct andiron_metric *metric)
{
	struct pulling *p = self;
	struct series s = {.kind = metric->kind, .value = metric->value};

	if (p->failed || !metric->name || !valid_name(str_of(metric->name), false) ||
	    p->fresh.series.n >= METRICS_PER_COMPONENT)
		return;
	s.name = arena_str(&p->fresh.arena, str_of(metric->name)).p;
	s.help = arena_str(&p->fresh.arena, str_of(metric->help)).p;
	s.labels = labels_text(p, metric);
	p->failed = !s.name || !s.help || !s.labels || !vec_push(&p->fresh.series, s);
}

void metrics_pull(struct instance *i, bool inside)
{
	struct component_metrics *c = get(&i->host->metrics, i->name), old = *c;
	struct pulling p = {.fresh = {c->component, c->n_instances}};
	struct andiron_metric_sink sink = {.size = sizeof(sink), .self = &p, .add = add};

	if (!i->component->metrics || !i->self || (!inside && !strand_enter(&i->strand)))
		return;
	i->component->metrics(i->self, &sink);
	if (!inside)
		strand_leave(&i->strand);
	if (!p.failed) {
		*c = p.fresh;
		p.fresh = old;
	}
	series_fini(&p.fresh);
}

static int by_name(const void *a, const void *b)
{
	const struct series *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order ? order : strcmp(x->labels, y->labels);
}

static void write_fraction(struct buf *out, double value)
{
	char text[64];

	str_print_fraction(text, sizeof(text), 17, value);
	buf_str_append(out, str_of(text));
}

static void write_value(struct buf *out, double value)
{
	if (isnan(value))
		buf_str_append(out, STR("NaN"));
	else if (isinf(value))
		buf_str_append(out, value > 0 ? STR("+Inf") : STR("-Inf"));
	else if (fabs(value) < 9e15 && trunc(value) >= value && trunc(value) <= value)
		buf_printf(out, "%" PRId64, (int64_t)value);
	else
		write_fraction(out, value);
}

static void write_head(struct buf *out, const struct series *s)
{
	buf_printf(out, "# HELP %s ", s->name);
	for (const char *c = s->help; *c; c++) {
		if (*c == '\n')
			buf_str_append(out, STR("\\n"));
		else if (*c == '\\')
			buf_str_append(out, STR("\\\\"));
		else
			buf_putc(out, *c);
	}
	buf_printf(out, "\n# TYPE %s %s\n", s->name,
		   s->kind == ANDIRON_METRIC_COUNTER ? "counter" : "gauge");
}

int metrics_write(struct series_list *list, struct buf *out)
{
	const struct series *before = NULL;

	if (list->n)
		qsort(list->p, list->n, sizeof(*list->p), by_name);
	vec_each (list, s) {
		bool same = before && strcmp(before->name, s->name) == 0;

		/* Two of one name and labels would make the whole page invalid. */
		if (same && strcmp(before->labels, s->labels) == 0)
			continue;
		if (!same)
			write_head(out, s);
		buf_printf(out, "%s%s ", s->name, s->labels);
		write_value(out, s->value);
		buf_putc(out, '\n');
		before = s;
	}
	return out->failed ? -ENOMEM : 0;
}

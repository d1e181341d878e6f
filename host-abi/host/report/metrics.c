/* SPDX-License-Identifier: Apache-2.0 */
/* Pulling and printing metrics. Contracts in metrics.h. */
#include "host/report/metrics.h"

#include "base/ascii.h"
#include "base/check.h"
#include "host/state.h"
#include "host/report/escape.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>

static void component_fini(struct component_metrics *c)
{
	free(c->component);
	vec_free(&c->series);
	arena_free(&c->arena);
}

void metrics_free(struct metrics *m)
{
	vec_each (&m->components, c)
		component_fini(c);
	vec_free(&m->components);
}

void metrics_forget(struct metrics *m, const char *component)
{
	for (size_t i = 0; i < m->components.n; i++) {
		if (strcmp(m->components.p[i].component, component) != 0)
			continue;
		component_fini(&m->components.p[i]);
		m->components.p[i] = m->components.p[--m->components.n];
		return;
	}
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

static void keep(struct metrics *m, struct component_metrics *fresh)
{
	vec_each (&m->components, c) {
		struct component_metrics old = *c;

		if (strcmp(c->component, fresh->component) != 0)
			continue;
		*c = *fresh;
		*fresh = old;
		return;
	}
	if (vec_push(&m->components, *fresh))
		*fresh = (struct component_metrics){0};
}

void metrics_pull(struct instance *i, bool inside)
{
	struct pulling p = {.fresh.component = str_dup(str_of(i->name))};
	struct andiron_metric_sink sink = {.size = sizeof(sink), .self = &p, .add = add};

	if (!p.fresh.component || !i->component->metrics || !i->self ||
	    (!inside && !strand_enter(&i->strand))) {
		free(p.fresh.component);
		return;
	}
	i->component->metrics(i->self, &sink);
	if (!inside)
		strand_leave(&i->strand);
	if (!p.failed)
		keep(&i->host->metrics, &p.fresh);
	component_fini(&p.fresh);
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

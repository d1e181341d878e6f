/* SPDX-License-Identifier: Apache-2.0 */
/* The flame graph's page. Contract in flame.h. */
#include "file/flame.h"

#include "base/json.h"
#include "base/vec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

struct step {
	uint32_t node;
	uint32_t depth;
};

struct order {
	VEC(struct step) steps;
};

static int note(void *context, const struct tree *t, uint32_t node, uint32_t depth)
{
	struct order *o = context;

	return vec_push(&o->steps, ((struct step){node, depth})) ? 0 : -ENOMEM;
}

static void begin_array(struct buf *out, const char *name)
{
	buf_printf(out, ",\n\"%s\":[", name);
}

static void put_number(struct buf *out, size_t i, int64_t value)
{
	char text[24];
	int n = snprintf(text, sizeof(text), i ? ",%" PRId64 : "%" PRId64, value);

	buf_append(out, text, (size_t)n);
}

static void put_frames(struct buf *out, const struct tree *t)
{
	begin_array(out, "strings");
	for (size_t i = 0; i < t->strings.strings.n; i++) {
		if (i)
			buf_putc(out, ',');
		json_put_str(out, intern_get(&t->strings, (uint32_t)i));
	}
	buf_putc(out, ']');
	begin_array(out, "names");
	for (size_t i = 0; i < t->frames.n; i++)
		put_number(out, i, t->frames.p[i].name);
	buf_putc(out, ']');
	begin_array(out, "modules");
	for (size_t i = 0; i < t->frames.n; i++)
		put_number(out, i, t->frames.p[i].module);
	buf_putc(out, ']');
	begin_array(out, "kinds");
	for (size_t i = 0; i < t->frames.n; i++)
		put_number(out, i, (int64_t)t->frames.p[i].kind);
	buf_putc(out, ']');
}

/* Whether every value is its samples times the period: the usual case, in
 * which the file need not say it twice. */
static bool values_follow(const struct tree *t, int64_t period)
{
	int64_t product;

	vec_each(&t->nodes, n)
		if (__builtin_mul_overflow(n->self_samples, period, &product) ||
		    product != n->self_value)
			return false;
	return true;
}

static void put_nodes(struct buf *out, const struct tree *t, const struct order *o, int64_t period)
{
	const struct step *steps = o->steps.p;

	begin_array(out, "frames");
	for (size_t i = 0; i < o->steps.n; i++)
		put_number(out, i, t->nodes.p[steps[i].node].frame);
	buf_putc(out, ']');
	begin_array(out, "depths");
	for (size_t i = 0; i < o->steps.n; i++)
		put_number(out, i, steps[i].depth);
	buf_putc(out, ']');
	begin_array(out, "samples");
	for (size_t i = 0; i < o->steps.n; i++)
		put_number(out, i, t->nodes.p[steps[i].node].self_samples);
	buf_putc(out, ']');
	if (values_follow(t, period)) {
		buf_printf(out, ",\n\"values\":null");
		return;
	}
	begin_array(out, "values");
	for (size_t i = 0; i < o->steps.n; i++)
		put_number(out, i, t->nodes.p[steps[i].node].self_value);
	buf_putc(out, ']');
}

static void put_caption(struct buf *out, const struct profile *p, const struct flame_caption *c,
			struct str unit)
{
	buf_printf(out, "{\"title\":");
	json_put_str(out, c->title.n ? c->title : STR("Flame graph"));
	buf_printf(out, ",\"host\":");
	json_put_str(out, c->host);
	buf_printf(out, ",\"unit\":");
	json_put_str(out, unit);
	buf_printf(out, ",\"period\":%" PRId64 ",\"time\":%" PRId64 ",\"duration\":%" PRId64,
		   p->period, p->time_ns / 1000000, p->duration_ns);
	begin_array(out, "losses");
	for (size_t i = 0; i < p->n_comments; i++) {
		struct str text = p->comments[i];

		if (i)
			buf_putc(out, ',');
		if (str_starts(text, STR("andiron: ")))
			text = str_skip(text, 9);
		json_put_str(out, text);
	}
	buf_putc(out, ']');
}

int flame_write(const struct tree *t, const struct profile *p, const struct flame_caption *caption,
		struct buf *out)
{
	struct order o = {0};
	size_t start = out->n;
	int r = tree_walk(t, note, &o);

	if (r == 0) {
		buf_str_append(out, str_of(flame_page_head));
		put_caption(out, p, caption, p->types[t->value_type].unit);
		put_frames(out, t);
		put_nodes(out, t, &o, p->period);
		buf_putc(out, '}');
		if (buf_str_append(out, str_of(flame_page_tail)) < 0 || out->failed)
			r = -ENOMEM;
	}
	if (r < 0)
		out->n = start;
	vec_free(&o.steps);
	return r;
}

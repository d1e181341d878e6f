/* SPDX-License-Identifier: Apache-2.0 */
/* The flame graph's page. Contract in flame.h. */
#include "flame.h"

#include "base/vec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* Bytes that begin a well-formed character, 0 if none does. */
static size_t character(struct str s)
{
	if ((unsigned char)s.p[0] < 0x80)
		return 1;
	for (size_t n = 2; n <= 4 && n <= s.n; n++)
		if (str_utf8(str_first(s, n)))
			return n;
	return 0;
}

/* Whether a character must not stand in a script element as it is: what could
 * end the element, and the two that JavaScript takes for line ends. */
static bool must_escape(struct str c)
{
	return (unsigned char)c.p[0] < 0x20 || strchr("<>&\"\\\x7f", c.p[0]) ||
	       str_eq(c, STR("\xe2\x80\xa8")) || str_eq(c, STR("\xe2\x80\xa9"));
}

void flame_put_json(struct buf *out, struct str s)
{
	buf_putc(out, '"');
	while (s.n) {
		size_t n = character(s);
		struct str c = str_first(s, n);

		if (n == 0)
			buf_str_append(out, STR("\\ufffd"));
		else if (!must_escape(c))
			buf_str_append(out, c);
		else if (n == 3)
			buf_printf(out, "\\u20%02x", c.p[2] == '\xa8' ? 0x28u : 0x29u);
		else
			buf_printf(out, "\\u%04x", (unsigned int)(unsigned char)c.p[0]);
		s = str_skip(s, n ? n : 1);
	}
	buf_putc(out, '"');
}

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
		flame_put_json(out, intern_get(&t->strings, (uint32_t)i));
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
	flame_put_json(out, c->title.n ? c->title : STR("Flame graph"));
	buf_printf(out, ",\"host\":");
	flame_put_json(out, c->host);
	buf_printf(out, ",\"unit\":");
	flame_put_json(out, unit);
	buf_printf(out, ",\"period\":%" PRId64 ",\"time\":%" PRId64 ",\"duration\":%" PRId64,
		   p->period, p->time_ns / 1000000, p->duration_ns);
	begin_array(out, "losses");
	for (size_t i = 0; i < p->n_comments; i++) {
		struct str text = p->comments[i];

		if (i)
			buf_putc(out, ',');
		if (str_starts(text, STR("andiron: ")))
			text = str_skip(text, 9);
		flame_put_json(out, text);
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

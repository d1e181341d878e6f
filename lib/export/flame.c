/* SPDX-License-Identifier: Apache-2.0 */
/* The flame graph's page. Contract in flame.h. */
#include "export/flame.h"

#include "base/check.h"
#include "base/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* An array of numbers: `value` is said in terms of the index `i`. */
#define PUT_ARRAY(out, name, first, n, value)                                                      \
	do {                                                                                       \
		buf_printf(out, ",\n\"%s\":[", name);                                              \
		for (uint32_t i = (first); i < (n); i++)                                           \
			put_number(out, i > (first), value);                                       \
		buf_putc(out, ']');                                                                \
	} while (0)

static void put_number(struct buf *out, bool comma, int64_t value)
{
	char text[24];
	int n = snprintf(text, sizeof(text), comma ? ",%" PRId64 : "%" PRId64, value);

	buf_append(out, text, (size_t)n);
}

static void put_text(struct buf *out, const char *name, struct str text)
{
	buf_printf(out, "\"%s\":", name);
	json_put_str(out, text);
	buf_putc(out, ',');
}

static void put_texts(struct buf *out, const char *name, const struct str *texts, size_t n)
{
	buf_printf(out, ",\n\"%s\":[", name);
	for (size_t i = 0; i < n; i++) {
		if (i)
			buf_putc(out, ',');
		json_put_str(out, texts[i]);
	}
	buf_putc(out, ']');
}

static int64_t positive(int64_t value)
{
	return value > 0 ? value : 0;
}

/* Whether every value is its samples times the period: the usual case, in which the file need not
 * say it twice. */
static bool values_follow(const struct call_tree *t, int64_t period)
{
	int64_t product;

	vec_each (&t->counts, count)
		if (__builtin_mul_overflow(count->samples, period, &product) ||
		    product != count->value)
			return false;
	return true;
}

static void put_tree(struct buf *out, const struct call_tree *t, int64_t period)
{
	uint32_t n_frames = (uint32_t)t->frames.ends.n, n_nodes = (uint32_t)t->nodes.ends.n;
	uint32_t n_keys = (uint32_t)t->keys.n, n_sets = (uint32_t)t->sets.ends.n;
	uint32_t n_leaves = (uint32_t)t->counts.n;

	check(t->leaves.ends.n == n_leaves);
	put_texts(out, "strings", t->strings.strings.p, t->strings.strings.n);
	PUT_ARRAY(out, "names", 0, n_frames, call_tree_frame(t, i)->name);
	PUT_ARRAY(out, "modules", 0, n_frames, call_tree_frame(t, i)->module);
	PUT_ARRAY(out, "sources", 0, n_frames, call_tree_frame(t, i)->source);
	PUT_ARRAY(out, "kinds", 0, n_frames, call_tree_frame(t, i)->kind);
	PUT_ARRAY(out, "parents", 1, n_nodes, i - call_tree_node(t, i)->parent);
	PUT_ARRAY(out, "frames", 1, n_nodes, call_tree_node(t, i)->frame);
	PUT_ARRAY(out, "keys", 0, n_keys, t->keys.p[i]);
	PUT_ARRAY(out, "sets", 0, n_sets * n_keys,
		  call_tree_label(t, i / n_keys, t->keys.p[i % n_keys]));
	PUT_ARRAY(out, "nodes", 0, n_leaves, call_tree_leaf(t, i)->node);
	PUT_ARRAY(out, "labels", 0, n_leaves, call_tree_leaf(t, i)->labels);
	PUT_ARRAY(out, "samples", 0, n_leaves, positive(t->counts.p[i].samples));
	if (values_follow(t, period))
		buf_str_append(out, STR(",\n\"values\":null"));
	else
		PUT_ARRAY(out, "values", 0, n_leaves, positive(t->counts.p[i].value));
}

static void put_losses(struct buf *out, const struct profile *p)
{
	buf_str_append(out, STR(",\n\"losses\":["));
	for (size_t i = 0; i < p->n_comments; i++) {
		struct str text = p->comments[i];

		if (i)
			buf_putc(out, ',');
		json_put_str(out, str_starts(text, STR("andiron: ")) ? str_skip(text, 9) : text);
	}
	buf_putc(out, ']');
}

static void put_fraction(struct buf *out, const char *name, double value)
{
	char text[40];
	int n = str_print_fraction(text, sizeof(text), 9, value);

	buf_printf(out, ",\"%s\":%.*s", name, n, text);
}

static void put_pair(struct buf *out, const struct call_tree *t, const struct flame_pair *pair)
{
	PUT_ARRAY(out, "sides", 0, (uint32_t)t->counts.n, call_tree_leaf(t, i)->side);
	buf_str_append(out, STR(",\n\"pair\":{\"profiles\":["));
	for (int i = 0; i < 2; i++) {
		const struct profile *p = pair->profiles[i];

		buf_str_append(out, i ? STR(",{") : STR("{"));
		put_text(out, "name", pair->names[i]);
		buf_printf(out, "\"time\":%" PRId64 ",\"duration\":%" PRId64, p->time_ns / 1000000,
			   p->duration_ns);
		put_fraction(out, "weight", pair->weight[i]);
		put_losses(out, p);
		buf_putc(out, '}');
	}
	buf_putc(out, ']');
	put_fraction(out, "limit", pair->limit);
	buf_putc(out, '}');
}

int flame_write(const struct call_tree *t, const struct profile *p, const struct flame_caption *c,
		struct buf *out)
{
	size_t start = out->n;

	buf_str_append(out, str_of(flame_page_head));
	buf_putc(out, '{');
	put_text(out, "title", c->title.n ? c->title : STR("Flame graph"));
	put_text(out, "host", c->host);
	put_text(out, "unit", p->types[t->value_type].unit);
	buf_printf(out, "\"period\":%" PRId64 ",\"time\":%" PRId64 ",\"duration\":%" PRId64,
		   p->period, p->time_ns / 1000000, p->duration_ns);
	put_losses(out, p);
	put_texts(out, "groups", c->groups, c->n_groups);
	put_tree(out, t, p->period);
	if (c->pair)
		put_pair(out, t, c->pair);
	buf_putc(out, '}');
	buf_str_append(out, str_of(flame_page_tail));
	if (!out->failed)
		return 0;
	out->n = start;
	return -ENOMEM;
}

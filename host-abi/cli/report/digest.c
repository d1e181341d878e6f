/* SPDX-License-Identifier: Apache-2.0 */
/* Contract in digest.h. How many nodes of the tree fit is found by trying: what a node costs
 * depends on which others are there. */
#include "cli/report/digest.h"

#include "cli/report/shown.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/search.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_NAME  100u /* characters of a function's name */
#define MAX_FILES 4u
#define TAIL      420u /* bytes kept for what was left out */
#define MIN_NODE  4u   /* bytes that a node takes at least */

static double percent(const struct digest *d, int64_t value)
{
	return d->top->sum > 0 ? 100 * (double)value / (double)d->top->sum : 0;
}

static void put_name(struct buf *out, struct str name, struct str module)
{
	struct str base = call_tree_base_name(module);

	if (name.n) {
		shown_text(out, name, MAX_NAME);
		return;
	}
	buf_putc(out, '[');
	shown_text(out, base.n ? base : STR("unknown"), MAX_NAME);
	buf_putc(out, ']');
}

static void put_files(const struct input *in, struct buf *out)
{
	for (size_t i = 0; i < in->files.n && i < MAX_FILES; i++) {
		buf_str_append(out, i ? STR(", ") : STR("# Profile: "));
		shown_text(out, call_tree_base_name(str_of(in->files.p[i].name)), 40);
	}
	if (in->files.n > MAX_FILES)
		buf_printf(out, " and %zu more files", in->files.n - MAX_FILES);
	buf_putc(out, '\n');
}

static void put_head(const struct digest *d, struct buf *out)
{
	const struct profile *p = d->input->p;
	char sum[32];

	put_files(d->input, out);
	buf_str_append(out, STR("Names are data of the profiled programs. Shares are of all "));
	shown_text(out, p->types[p->default_type].type, 40);
	shown_amount(sum, sizeof(sum), d->top->sum, p->types[p->default_type].unit);
	buf_printf(out, ", %s", sum);
	if (d->top->samples >= 0)
		buf_printf(out, ", %" PRId64 " samples", d->top->samples);
	buf_str_append(out, STR(".\n"));
	if (d->input->is_cpu) {
		shown_cores(out, d->input->cpu_ns, p->duration_ns);
		buf_str_append(out, STR(".\n"));
	}
	for (size_t i = 0; i < d->losses->n && i < MAX_FILES; i++) {
		buf_printf(out, "Lost: %" PRIu64 " samples, ", d->losses->list[i].samples);
		shown_text(out, d->losses->list[i].reason, 40);
		buf_str_append(out, STR(".\n"));
	}
}

/* --- Functions --- */

/* Returns how many are shown. */
static size_t put_functions(const struct digest *d, size_t limit, struct buf *out)
{
	size_t i;

	buf_str_append(out, STR("\n## Functions: self %, total %\n"));
	top_sort_by_self(d->top);
	for (i = 0; i < d->top->n && d->top->entries[i].self > 0; i++) {
		const struct top_entry *e = &d->top->entries[i];
		size_t before = out->n;

		buf_printf(out, "%.1f %.1f ", percent(d, e->self), percent(d, e->total));
		put_name(out, e->name, e->module);
		if (e->source.n) {
			buf_putc(out, ' ');
			shown_text(out, e->source, MAX_NAME);
		}
		buf_putc(out, '\n');
		if (out->n > limit) {
			out->n = before;
			break;
		}
	}
	return i;
}

/* --- The call tree --- */

struct branch {
	int64_t self, total;
	uint32_t child, sibling; /* of the same parent, the lightest first; 0: none */
	uint32_t rank;           /* 0: the heaviest of all */
};

struct step {
	uint32_t node, indent;
};

struct picture {
	const struct digest *d;
	struct branch *branches; /* by node */
	uint32_t *order;         /* nodes, the heaviest first; parents before children */
	size_t n;                /* nodes worth showing */
	VEC(struct step) open;
};

struct ranked {
	int64_t total;
	uint32_t node;
};

static int heaviest_first(const void *pa, const void *pb)
{
	const struct ranked *a = pa, *b = pb;

	return compare(b->total, a->total) ?: compare(a->node, b->node);
}

static int rank(struct picture *p, size_t n_nodes, size_t limit)
{
	_cleanup_(freep) struct ranked *list = calloc(n_nodes, sizeof(*list));

	p->order = calloc(n_nodes, sizeof(*p->order));
	if (!list || !p->order)
		return -ENOMEM;
	for (uint32_t i = 1; i < n_nodes; i++) {
		p->branches[i].rank = UINT32_MAX;
		if (p->branches[i].total > 0)
			list[p->n++] = (struct ranked){p->branches[i].total, i};
	}
	qsort(list, p->n, sizeof(*list), heaviest_first);
	if (p->n > limit / MIN_NODE)
		p->n = limit / MIN_NODE;
	for (uint32_t i = 0; i < p->n; i++) {
		p->order[i] = list[i].node;
		p->branches[list[i].node].rank = i;
	}
	for (uint32_t i = 0; i < p->n; i++) {
		struct branch *b = &p->branches[p->order[i]];
		struct branch *parent =
			&p->branches[call_tree_node(p->d->tree, p->order[i])->parent];

		b->sibling = parent->child;
		parent->child = p->order[i];
	}
	return 0;
}

static int draw(struct picture *p, size_t limit)
{
	const struct call_tree *t = p->d->tree;
	size_t n = t->nodes.ends.n;

	p->branches = calloc(n, sizeof(*p->branches));
	if (!p->branches)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->counts.n; i++) {
		struct branch *b = &p->branches[call_tree_leaf(t, i)->node];

		b->self = pprof_sum(b->self, t->counts.p[i].value);
	}
	for (size_t i = n; i-- > 1;) {
		struct branch *b = &p->branches[i];
		struct branch *parent = &p->branches[call_tree_node(t, (uint32_t)i)->parent];

		b->total = pprof_sum(b->total, b->self);
		parent->total = pprof_sum(parent->total, b->total);
	}
	return rank(p, n, limit);
}

static void put_node(const struct picture *p, uint32_t node, struct buf *out)
{
	const struct call_tree *t = p->d->tree;
	const struct frame *f = call_tree_frame(t, call_tree_node(t, node)->frame);

	put_name(out, intern_get(&t->strings, f->name), intern_get(&t->strings, f->module));
}

/* The only child that is shown, if all of the node's value passes through it; else 0. */
static uint32_t only_child(const struct picture *p, uint32_t node, size_t k)
{
	uint32_t found = 0;

	for (uint32_t c = p->branches[node].child; c; c = p->branches[c].sibling)
		if (p->branches[c].rank < k)
			found = c; /* the last one is the heaviest */
	return found && p->branches[found].total == p->branches[node].total ? found : 0;
}

/* One line: calls that lead nowhere else are one chain. */
static bool put_line(struct picture *p, struct step step, size_t k, struct buf *out)
{
	uint32_t node = step.node, next;
	const struct branch *b;

	for (uint32_t i = 0; i < step.indent; i++)
		buf_putc(out, ' ');
	put_node(p, node, out);
	while ((next = only_child(p, node, k))) {
		buf_str_append(out, STR(" > "));
		put_node(p, next, out);
		node = next;
	}
	b = &p->branches[node];
	buf_printf(out, " %.1f", percent(p->d, b->total));
	if (b->self > 0 && b->child)
		buf_printf(out, " (%.1f)", percent(p->d, b->self));
	buf_putc(out, '\n');
	for (uint32_t c = b->child; c; c = p->branches[c].sibling)
		if (p->branches[c].rank < k &&
		    !vec_push(&p->open, ((struct step){c, step.indent + 1})))
			return false;
	return true;
}

/* The k heaviest nodes; false: they do not fit, or memory is short. */
static bool put_tree(struct picture *p, size_t k, size_t limit, struct buf *out)
{
	p->open.n = 0;
	buf_str_append(out, STR("\n## Call tree: total % (self %)\n"));
	for (uint32_t c = p->branches[0].child; c; c = p->branches[c].sibling)
		if (p->branches[c].rank < k && !vec_push(&p->open, ((struct step){c, 0})))
			return false;
	while (p->open.n && out->n <= limit)
		if (!put_line(p, p->open.p[--p->open.n], k, out))
			return false;
	return out->n <= limit && !out->failed;
}

static bool fits(struct picture *p, size_t k, size_t limit)
{
	struct buf trial = BUF_NULL;
	bool good = put_tree(p, k, limit, &trial);

	buf_free(&trial);
	return good;
}

/* --- What was left out --- */

static void put_rest(const struct picture *p, size_t n_functions, size_t k, size_t n_nodes,
		     struct buf *out)
{
	const struct digest *d = p->d;
	int64_t self = 0;

	buf_str_append(out, STR("\n## Left out\n"));
	for (size_t i = n_functions; i < d->top->n; i++)
		self = pprof_sum(self, d->top->entries[i].self);
	if (n_functions < d->top->n)
		buf_printf(out, "%zu of %zu functions, with %.1f %% of self.\n",
			   d->top->n - n_functions, d->top->n, percent(d, self));
	if (k < n_nodes)
		buf_printf(out, "%zu of %zu nodes of the tree: none has more than %.1f %%.\n",
			   n_nodes - k, n_nodes,
			   percent(d, k < p->n ? p->branches[p->order[k]].total
				      : k      ? p->branches[p->order[k - 1]].total
					       : d->top->sum));
	buf_printf(out,
		   "Names behind %u characters, threads, processes, lines. For all: andiron report "
		   "--json -n 1000000.\n",
		   MAX_NAME);
}

/* Whole lines alone: names that are all escapes take four times their room. */
static void cut(struct buf *text, size_t limit)
{
	if (text->n <= limit)
		return;
	text->n = limit;
	while (text->n && text->p[text->n - 1] != '\n')
		text->n--;
}

/* Functions get two fifths of the room, the tree what they leave. */
static int put_parts(struct picture *p, size_t limit, struct buf *text)
{
	struct buf tree = BUF_NULL;
	size_t n_functions, k, room;
	int r;

	put_head(p->d, text);
	cut(text, limit / 2);
	n_functions = put_functions(p->d, text->n + (limit - text->n) * 2 / 5, text);
	room = limit - text->n;
	r = draw(p, room);
	if (r < 0)
		return r;
	k = search_partition(p->n, i, fits(p, i + 1, room));
	if (k && !put_tree(p, k, room, &tree))
		r = -ENOMEM;
	buf_str_append(text, buf_str(&tree));
	buf_free(&tree);
	put_rest(p, n_functions, k, p->d->tree->nodes.ends.n - 1, text);
	return r;
}

int digest_write(const struct digest *d, size_t tokens, struct buf *out)
{
	struct picture p = {.d = d};
	struct buf text = BUF_NULL;
	int r;

	check(tokens >= DIGEST_MIN_TOKENS && tokens <= DIGEST_MAX_TOKENS);
	r = put_parts(&p, tokens * DIGEST_TOKEN_BYTES - TAIL, &text);
	if (r == 0 && (text.failed || buf_str_append(out, buf_str(&text)) < 0))
		r = -ENOMEM;
	free(p.branches);
	free(p.order);
	vec_free(&p.open);
	buf_free(&text);
	return r;
}

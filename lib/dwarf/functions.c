/* SPDX-License-Identifier: Apache-2.0 */
/* Functions and inlined calls. Contract in functions.h. */
#include "dwarf/functions.h"

#include "base/check.h"
#include "base/search.h"
#include "dwarf/dw.h"

#include <errno.h>

/* A walk over entries in the order of the file. */
struct walk {
	const struct unit *u;
	struct cursor *c;
	const struct abbrev_table *t;
	uint64_t *steps;
	uint64_t at;            /* of the entry */
	const struct abbrev *a; /* its shape; NULL: the end of a list of children */
};

static int walk_init(struct walk *w, const struct unit *u, uint64_t at, uint64_t *steps)
{
	*w = (struct walk){.u = u, .c = &u->file->c[DWARF_INFO], .steps = steps};
	cursor_seek(w->c, at);
	return dwarf_file_abbrevs(u->file, u->head, &w->t);
}

/* Reads the next entry's shape: 1; 0 at the end of the unit. */
static int walk_next(struct walk *w)
{
	uint64_t code;

	if (*w->steps == 0)
		return -ETIME;
	--*w->steps;
	w->at = cursor_at(w->c);
	if (w->at >= w->u->head->end)
		return 0;
	code = cursor_uleb(w->c);
	if (w->c->error)
		return w->c->error;
	w->a = code ? abbrev_find(w->t, code) : NULL;
	return code && !w->a ? -ENOEXEC : 1;
}

static void walk_skip(struct walk *w)
{
	die_skip(w->c, w->t, w->a, &w->u->head->format);
}

static void walk_read(struct walk *w, struct die *d)
{
	die_read(d, w->c, w->t, w->a, &w->u->head->format);
}

static int add_function(struct functions *f, const struct walk *w, const struct die *d,
			struct spans *spans)
{
	int r = unit_ranges(w->u, d, FUNCTION_RANGES, spans);

	/* A list that makes no sense is that function's loss. */
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	vec_each (&spans->list, s) {
		if (f->list.n >= FUNCTIONS_MAX)
			return -E2BIG;
		if (!vec_push(&f->list, ((struct function){s->low, s->high, w->at})))
			return -ENOMEM;
	}
	return 0;
}

static bool has_code(const struct die *d)
{
	return die_has(d, DIE_LOW_PC) || die_has(d, DIE_RANGES);
}

static int collect(struct functions *f, struct walk *w, struct spans *spans)
{
	for (unsigned int depth = 0;;) {
		struct die d;
		int r = walk_next(w);

		if (r <= 0)
			return r;
		if (!w->a) {
			if (depth <= 1)
				return 0;
			depth--;
			continue;
		}
		if (w->a->tag == DW_TAG_subprogram) {
			walk_read(w, &d);
			r = has_code(&d) ? add_function(f, w, &d, spans) : 0;
		} else {
			walk_skip(w);
		}
		if (r < 0 || w->c->error)
			return r < 0 ? r : w->c->error;
		depth += w->a->children;
		if (!depth)
			return 0;
	}
}

static int by_low(const void *x, const void *y)
{
	const struct function *a = x, *b = y;

	/* The larger first, so that the inner one is found. */
	return compare(a->low, b->low) ?: compare(b->high, a->high) ?: compare(a->entry, b->entry);
}

int functions_load(struct functions *ret, const struct unit *u, uint64_t *steps)
{
	struct functions f = {0};
	struct spans spans = {0};
	struct walk w;
	int r = walk_init(&w, u, u->head->root, steps);

	if (r == 0)
		r = collect(&f, &w, &spans);
	vec_free(&spans.list);
	if (r < 0) {
		vec_free(&f.list);
		return r;
	}
	if (f.list.n)
		qsort(f.list.p, f.list.n, sizeof(*f.list.p), by_low);
	*ret = f;
	return 0;
}

const struct function *functions_find(const struct functions *f, uint64_t address)
{
	size_t low = search_partition(f->list.n, i, f->list.p[i].low <= address);

	for (size_t tries = 0; low && tries < 32; tries++, low--)
		if (address < f->list.p[low - 1].high)
			return &f->list.p[low - 1];
	return NULL;
}

void inlines_free(struct inlines *i)
{
	vec_free(&i->nodes);
	vec_free(&i->spans);
	i->entry = 0;
}

static struct form_value origin_of(const struct die *d)
{
	return die_has(d, DIE_ORIGIN)          ? d->v[DIE_ORIGIN]
	       : die_has(d, DIE_SPECIFICATION) ? d->v[DIE_SPECIFICATION]
					       : (struct form_value){FORM_NONE, 0};
}

static int add_inline(struct inlines *i, const struct walk *w, const struct die *d, uint32_t parent,
		      struct spans *spans)
{
	struct inline_node node = {
		.parent = parent,
		.line = (uint32_t)die_number(d, DIE_CALL_LINE),
		.column = (uint32_t)die_number(d, DIE_CALL_COLUMN),
		.file = die_number(d, DIE_CALL_FILE),
		.origin = origin_of(d),
	};
	int r = unit_ranges(w->u, d, FUNCTION_RANGES, spans);

	check(parent < i->nodes.n);
	if (r == -ENOMEM)
		return r;
	if (i->nodes.n >= INLINES_MAX || i->spans.n >= INLINES_MAX)
		return -E2BIG;
	if (!vec_push(&i->nodes, node))
		return -ENOMEM;
	for (size_t k = 0; r == 0 && k < spans->list.n; k++)
		if (!vec_push(&i->spans,
			      ((struct inline_span){spans->list.p[k].low, spans->list.p[k].high,
						    (uint32_t)i->nodes.n - 1})))
			return -ENOMEM;
	return 0;
}

struct below {
	struct inlines *inlines;
	struct spans spans;
	uint32_t node[INLINES_MAX_DEPTH]; /* that the children at each depth belong to */
	unsigned int depth;
	unsigned int hidden; /* depth at which entries are of another function; 0: none */
};

/* Entries of these have calls of their own, or none. */
static bool hides(uint16_t tag)
{
	return tag == DW_TAG_subprogram || tag == DW_TAG_enumeration_type ||
	       tag == DW_TAG_array_type || tag == DW_TAG_subroutine_type;
}

static int visit(struct below *b, struct walk *w)
{
	uint32_t node = b->node[b->depth];
	struct die d;
	int r = 0;

	if (w->a->tag == DW_TAG_inlined_subroutine && !b->hidden) {
		walk_read(w, &d);
		if (!w->c->error)
			r = add_inline(b->inlines, w, &d, node, &b->spans);
		node = (uint32_t)b->inlines->nodes.n - 1;
	} else {
		walk_skip(w);
	}
	if (r < 0 || w->c->error)
		return r < 0 ? r : w->c->error;
	if (!w->a->children)
		return 0;
	if (++b->depth >= INLINES_MAX_DEPTH)
		return -E2BIG;
	b->node[b->depth] = node;
	if (!b->hidden && hides(w->a->tag))
		b->hidden = b->depth;
	return 0;
}

static int walk_below(struct below *b, struct walk *w)
{
	while (b->depth) {
		int r = walk_next(w);

		if (r <= 0)
			return r;
		if (w->a) {
			r = visit(b, w);
			if (r < 0)
				return r;
			continue;
		}
		if (b->depth == b->hidden)
			b->hidden = 0;
		b->depth--;
	}
	return 0;
}

int inlines_load(struct inlines *ret, const struct unit *u, uint64_t entry, uint64_t *steps)
{
	struct inlines i = {.entry = entry};
	struct below *b = calloc(1, sizeof(*b));
	struct walk w;
	struct die d;
	int r = b ? walk_init(&w, u, entry, steps) : -ENOMEM;

	if (r == 0)
		r = walk_next(&w);
	if (r == 1 && w.a) {
		walk_read(&w, &d);
		r = w.c->error;
	} else if (r >= 0) {
		r = -ENOEXEC;
	}
	if (r == 0 && !vec_push(&i.nodes, ((struct inline_node){.origin = origin_of(&d)})))
		r = -ENOMEM;
	if (r == 0) {
		b->inlines = &i;
		b->depth = w.a->children;
		r = walk_below(b, &w);
	}
	if (b)
		vec_free(&b->spans.list);
	free(b);
	if (r < 0) {
		inlines_free(&i);
		return r;
	}
	*ret = i;
	return 0;
}

uint32_t inlines_find(const struct inlines *i, uint64_t address)
{
	for (size_t k = i->spans.n; k--;)
		if (address >= i->spans.p[k].low && address < i->spans.p[k].high)
			return i->spans.p[k].node;
	return 0;
}

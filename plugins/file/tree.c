/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of calls. Contracts in tree.h. */
#include "file/tree.h"

#include "abi/unsymbolized.h"
#include "base/check.h"
#include "base/cleanup.h"
#include "base/hash.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_NAME 512u

struct builder {
	const struct profile *p;
	struct tree *t;
	uint32_t *line_frames;     /* by line of the profile */
	uint32_t *location_frames; /* by location, for those without lines */
	uint32_t no_stack;         /* of samples without any frame */
};

void tree_free(struct tree *t)
{
	if (!t)
		return;
	intern_free(&t->strings);
	vec_free(&t->frames);
	vec_free(&t->nodes);
	index_free(&t->frame_index);
	index_free(&t->node_index);
	free(t);
}

struct frame_probe {
	const struct tree *t;
	struct frame sought;
};

static bool same_frame(const void *context, uint32_t position)
{
	const struct frame_probe *probe = context;
	const struct frame *f = &probe->t->frames.p[position];

	return f->name == probe->sought.name && f->module == probe->sought.module &&
	       f->kind == probe->sought.kind;
}

/* The frame's id, INDEX_NONE when memory is short. */
static uint32_t add_frame(struct tree *t, struct str name, struct str module, enum frame_kind kind)
{
	struct frame_probe probe = {.t = t};
	uint64_t hash;
	uint32_t id;

	probe.sought.name = intern_add(&t->strings, name);
	probe.sought.module = intern_add(&t->strings, module);
	probe.sought.kind = kind;
	if (probe.sought.name == INDEX_NONE || probe.sought.module == INDEX_NONE)
		return INDEX_NONE;
	hash = hash_mix((uint64_t)probe.sought.name << 32 | probe.sought.module, kind);
	id = index_find(&t->frame_index, hash, same_frame, &probe);
	if (id != INDEX_NONE)
		return id;
	id = (uint32_t)t->frames.n;
	if (!vec_reserve(&t->frames, 1) || index_add(&t->frame_index, hash, id) < 0)
		return INDEX_NONE;
	t->frames.p[t->frames.n++] = probe.sought;
	return id;
}

struct node_probe {
	const struct tree *t;
	uint32_t parent, frame;
};

static bool same_node(const void *context, uint32_t position)
{
	const struct node_probe *probe = context;
	const struct node *n = &probe->t->nodes.p[position];

	return n->parent == probe->parent && n->frame == probe->frame;
}

static uint32_t add_node(struct tree *t, uint32_t parent, uint32_t frame)
{
	struct node_probe probe = {t, parent, frame};
	uint64_t hash = hash_u64((uint64_t)parent << 32 | frame);
	uint32_t id = index_find(&t->node_index, hash, same_node, &probe);

	if (id != INDEX_NONE)
		return id;
	id = (uint32_t)t->nodes.n;
	if (t->nodes.n >= INDEX_NONE || !vec_reserve(&t->nodes, 1) ||
	    index_add(&t->node_index, hash, id) < 0)
		return INDEX_NONE;
	t->nodes.p[t->nodes.n++] = (struct node){.parent = parent, .frame = frame};
	return id;
}

static struct str base_name(struct str path)
{
	size_t slash = str_rfind(path, '/');

	return slash < path.n && slash + 1 < path.n ? str_skip(path, slash + 1) : path;
}

static bool is_file(struct str mapping)
{
	return mapping.n && mapping.p[0] != '[';
}

/* By the mapping names that export/pprof.h gives, and those of others. */
static enum frame_kind kind_of(struct str mapping)
{
	if (str_starts(mapping, STR("[kernel")) || str_ends(mapping, STR(".ko")) ||
	    str_is(base_name(mapping), "vmlinux"))
		return FRAME_KERNEL;
	if (str_is(mapping, "[andiron]"))
		return FRAME_MARKER;
	if (str_is(mapping, "[anon]"))
		return FRAME_UNKNOWN;
	if (mapping.n == 0 || is_file(mapping) || str_is(mapping, "[vdso]") ||
	    str_is(mapping, "[unknown]"))
		return FRAME_NATIVE;
	return FRAME_RUNTIME;
}

/* An address that nobody has named: "[libc.so.6]+0x1a2b". */
static uint32_t add_bare_frame(struct tree *t, const struct profile_location *l, struct str file)
{
	char text[MAX_NAME];
	struct str name = str_first(base_name(file), 256);

	if (name.n == 0 || l->address == 0)
		return add_frame(t, STR("[unknown]"), file, FRAME_UNKNOWN);
	if (name.p[0] == '[')
		snprintf(text, sizeof(text), "%.*s+0x%" PRIx64, STR_FMT(name), l->address);
	else
		snprintf(text, sizeof(text), "[%.*s]+0x%" PRIx64, STR_FMT(name), l->address);
	return add_frame(t, str_of(text), file,
			 kind_of(file) == FRAME_KERNEL ? FRAME_KERNEL : FRAME_UNKNOWN);
}

/* Gives each location and each of its lines a frame, so that a sample's walk
 * touches no string. */
static int add_frames(struct builder *b)
{
	for (size_t i = 1; i < b->p->n_locations; i++) { /* 0 is the null entry */
		const struct profile_location *l = &b->p->locations[i];
		struct str file = b->p->mappings[l->mapping].file;
		enum frame_kind kind = kind_of(file);

		for (uint32_t k = l->line_start; k < l->line_start + l->n_lines; k++) {
			struct str name = b->p->functions[b->p->lines[k].function].name;
			bool named;

			if (!name.n)
				name = STR("[unknown]");
			named = !str_is(name, "[unknown]") && !unsymbolized_is(name, file);
			b->line_frames[k] = add_frame(
				b->t, name, file,
				named || kind == FRAME_KERNEL ? kind : FRAME_UNKNOWN);
			if (b->line_frames[k] == INDEX_NONE)
				return -ENOMEM;
		}
		if (l->n_lines)
			continue;
		b->location_frames[i] = add_bare_frame(b->t, l, file);
		if (b->location_frames[i] == INDEX_NONE)
			return -ENOMEM;
	}
	return 0;
}

/* The node that a sample's stack hangs below: its process, or the root. */
static uint32_t process_node(struct builder *b, const struct profile_sample *s)
{
	const struct profile_label *process = profile_label(b->p, s, STR("process"));
	const struct profile_label *pid = profile_label(b->p, s, STR("pid"));
	char text[MAX_NAME];
	struct str name = process ? str_first(process->text, 256) : STR("");
	uint32_t frame;

	if (!process && !pid)
		return 0;
	if (name.n == 0)
		name = STR("process");
	if (!pid)
		snprintf(text, sizeof(text), "%.*s", STR_FMT(name));
	else if (pid->text.n)
		snprintf(text, sizeof(text), "%.*s (pid %.*s)", STR_FMT(name),
			 STR_FMT(str_first(pid->text, 20)));
	else
		snprintf(text, sizeof(text), "%.*s (pid %" PRId64 ")", STR_FMT(name), pid->number);
	frame = add_frame(b->t, str_of(text), STR(""), FRAME_MARKER);
	return frame == INDEX_NONE ? INDEX_NONE : add_node(b->t, 0, frame);
}

static int64_t positive(int64_t v)
{
	return v > 0 ? v : 0;
}

static int64_t add_saturating(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static int add_sample(struct builder *b, size_t index)
{
	const struct profile_sample *s = &b->p->samples[index];
	const int64_t *values = b->p->values + index * b->p->n_types;
	uint32_t node = process_node(b, s);
	struct node *leaf;

	for (uint32_t i = s->n_frames; i > 0 && node != INDEX_NONE; i--) {
		uint32_t location = b->p->frames[s->frame_start + i - 1];
		const struct profile_location *l = &b->p->locations[location];

		if (l->n_lines == 0)
			node = add_node(b->t, node, b->location_frames[location]);
		for (uint32_t k = l->n_lines; k > 0 && node != INDEX_NONE; k--)
			node = add_node(b->t, node, b->line_frames[l->line_start + k - 1]);
	}
	if (s->n_frames == 0 && node != INDEX_NONE)
		node = add_node(b->t, node, b->no_stack);
	if (node == INDEX_NONE)
		return -ENOMEM;
	leaf = &b->t->nodes.p[node];
	leaf->self_samples =
		add_saturating(leaf->self_samples, positive(values[b->t->sample_type]));
	leaf->self_value = add_saturating(leaf->self_value, positive(values[b->t->value_type]));
	return 0;
}

/* Children stand behind their parents, so one pass from the end will do. */
static void sum_up(struct tree *t)
{
	for (size_t i = t->nodes.n; i-- > 0;) {
		struct node *n = &t->nodes.p[i], *parent = &t->nodes.p[n->parent];

		n->samples = add_saturating(n->samples, n->self_samples);
		n->value = add_saturating(n->value, n->self_value);
		if (i == 0)
			break;
		check(n->parent < i);
		parent->samples = add_saturating(parent->samples, n->samples);
		parent->value = add_saturating(parent->value, n->value);
	}
}

static int build(struct builder *b)
{
	struct tree *t = b->t;
	int r;

	t->value_type = t->sample_type = b->p->default_type;
	for (size_t i = 0; i < b->p->n_types; i++)
		if (str_is(b->p->types[i].type, "samples") && str_is(b->p->types[i].unit, "count"))
			t->sample_type = i;
	if (add_frame(t, STR(""), STR(""), FRAME_MARKER) == INDEX_NONE ||
	    !vec_push(&t->nodes, ((struct node){0})))
		return -ENOMEM;
	b->no_stack = add_frame(t, STR("[no stack]"), STR(""), FRAME_MARKER);
	r = b->no_stack == INDEX_NONE ? -ENOMEM : add_frames(b);
	for (size_t i = 0; i < b->p->n_samples && r == 0; i++)
		r = add_sample(b, i);
	if (r == 0)
		sum_up(t);
	return r;
}

int tree_build(const struct profile *p, struct tree **ret)
{
	_cleanup_(freep) uint32_t *line_frames = calloc(p->n_lines + 1, sizeof(*line_frames));
	_cleanup_(freep) uint32_t *location_frames =
		calloc(p->n_locations + 1, sizeof(*location_frames));
	struct builder b = {p, calloc(1, sizeof(*b.t)), line_frames, location_frames, 0};
	int r = -ENOMEM;

	if (b.t && line_frames && location_frames)
		r = build(&b);
	if (r < 0)
		tree_free(b.t);
	else
		*ret = b.t;
	return r;
}

/* Siblings together, the heaviest first; names settle a tie, so that equal
 * profiles make equal files. */
static int by_parent_and_weight(const void *pa, const void *pb, void *context)
{
	const struct tree *t = context;
	const struct node *a = &t->nodes.p[*(const uint32_t *)pa];
	const struct node *b = &t->nodes.p[*(const uint32_t *)pb];

	if (a->parent != b->parent)
		return a->parent < b->parent ? -1 : 1;
	if (a->value != b->value)
		return a->value > b->value ? -1 : 1;
	return str_cmp(intern_get(&t->strings, t->frames.p[a->frame].name),
		       intern_get(&t->strings, t->frames.p[b->frame].name));
}

struct step {
	uint32_t position; /* in the order */
	uint32_t depth;
};

int tree_walk(const struct tree *t, tree_visit_fn fn, void *context)
{
	size_t n = t->nodes.n;
	_cleanup_(freep) uint32_t *order = malloc(n * sizeof(*order));
	_cleanup_(freep) uint32_t *first = malloc((n + 1) * sizeof(*first));
	_cleanup_(freep) struct step *stack = malloc(n * sizeof(*stack));
	size_t depth = 0;
	int r = 0;

	if (!order || !first || !stack)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		order[i] = i;
	/* The root, its own parent, stays in front. */
	qsort_r(order + 1, n - 1, sizeof(*order), by_parent_and_weight, (void *)(uintptr_t)t);
	/* first[p]: where p's children begin in the order. */
	for (size_t p = 0, i = 1; p <= n; p++) {
		while (i < n && t->nodes.p[order[i]].parent < p)
			i++;
		first[p] = (uint32_t)i;
	}
	for (uint32_t i = first[1]; i > first[0]; i--)
		stack[depth++] = (struct step){i - 1, 0};
	while (depth && r == 0) {
		struct step s = stack[--depth];
		uint32_t node = order[s.position];

		r = fn(context, t, node, s.depth);
		for (uint32_t i = first[node + 1]; i > first[node]; i--)
			stack[depth++] = (struct step){i - 1, s.depth + 1};
		check(depth <= n);
	}
	return r;
}

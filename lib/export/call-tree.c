/* SPDX-License-Identifier: Apache-2.0 */
/* The tree of calls. Contracts in call-tree.h. */
#include "export/call-tree.h"

#include "export/frame-type.h"
#include "export/function-name.h"

#include "abi/unsymbolized.h"
#include "base/check.h"
#include "base/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_NAME   512u
#define MAX_LABELS 64u /* of a sample; further ones are left out */

struct builder {
	const struct profile *p;
	struct call_tree *t;
	uint32_t flags;
	size_t sample_type;
	uint32_t *line_frames;     /* by line of the profile */
	uint32_t *location_frames; /* by location, for those without lines */
	uint32_t no_stack;         /* of samples without any frame */
	uint32_t side;
	bool pair;
	struct table same; /* of a pair: struct sameness, by frame */
	struct buf name;   /* plain, of the function at hand */
};

/* What makes two functions of a pair one: strings. */
struct sameness {
	uint32_t name;
	uint32_t source; /* its file without folders */
	uint32_t kernel;
};

void call_tree_free(struct call_tree *t)
{
	if (!t)
		return;
	intern_free(&t->strings);
	table_free(&t->frames);
	table_free(&t->nodes);
	table_free(&t->leaves);
	table_free(&t->sets);
	vec_free(&t->counts);
	vec_free(&t->keys);
	free(t);
}

struct str call_tree_base_name(struct str path)
{
	size_t slash = str_rfind(path, '/');

	return slash < path.n && slash + 1 < path.n ? str_skip(path, slash + 1) : path;
}

bool call_tree_unsymbolized(struct str name, struct str file)
{
	return name.n == 0 || str_is(name, "[unknown]") || unsymbolized_is(name, file);
}

static uint32_t add_record(struct table *t, const void *record, size_t size)
{
	bool fresh;

	return table_add(t, (struct str){record, size}, &fresh);
}

/* A frame of a pair, known by what makes it the same function. */
static uint32_t add_same(struct builder *b, const struct frame *frame, struct str source)
{
	struct sameness key = {frame->name, intern_add(&b->t->strings, source),
			       frame->kind == FRAME_KERNEL};
	uint32_t id;
	bool fresh;

	if (key.source == INDEX_NONE)
		return INDEX_NONE;
	id = table_add(&b->same, (struct str){(const char *)&key, sizeof(key)}, &fresh);
	/* Equal frames have equal keys, so both tables number alike. */
	if (id != INDEX_NONE && fresh && add_record(&b->t->frames, frame, sizeof(*frame)) != id)
		return INDEX_NONE;
	return id;
}

/* The frame's id, INDEX_NONE when memory is short. */
static uint32_t add_frame_of(struct builder *b, struct str name, struct str module,
			     struct str source, enum frame_kind kind)
{
	struct intern *strings = &b->t->strings;
	struct frame frame = {intern_add(strings, name), intern_add(strings, module),
			      intern_add(strings, source), kind};

	if (frame.name == INDEX_NONE || frame.module == INDEX_NONE || frame.source == INDEX_NONE)
		return INDEX_NONE;
	if (b->pair)
		return add_same(b, &frame, call_tree_base_name(source));
	return add_record(&b->t->frames, &frame, sizeof(frame));
}

static uint32_t add_frame(struct builder *b, struct str name, struct str module,
			  enum frame_kind kind)
{
	return add_frame_of(b, name, module, STR(""), kind);
}

/* By the mapping names that export/pprof.h gives, and those of others. */
static enum frame_kind kind_of(struct str mapping)
{
	bool is_file = mapping.n == 0 || mapping.p[0] != '[';

	if (frame_type_is_kernel(mapping))
		return FRAME_KERNEL;
	if (str_is(mapping, "[andiron]"))
		return FRAME_MARKER;
	if (str_is(mapping, "[anon]"))
		return FRAME_UNKNOWN;
	return is_file || str_is(mapping, "[vdso]") || str_is(mapping, "[unknown]") ? FRAME_NATIVE
										    : FRAME_RUNTIME;
}

/* For code without a name. */
static uint32_t add_bare_frame(struct builder *b, const struct profile_location *l, struct str file)
{
	enum frame_kind kind = kind_of(file) == FRAME_KERNEL ? FRAME_KERNEL : FRAME_UNKNOWN;
	struct str base = str_first(call_tree_base_name(file), MAX_NAME - 32);
	char text[MAX_NAME];

	if (b->flags & CALL_TREE_BY_FILE)
		return add_frame(b, STR(""), file, kind);
	if (file.n == 0 || str_is(file, "[anon]"))
		snprintf(text, sizeof(text), "[unknown]");
	else if (b->pair) /* an address says nothing of another build */
		snprintf(text, sizeof(text), file.p[0] == '[' ? "%.*s" : "[%.*s]", STR_FMT(base));
	else
		snprintf(text, sizeof(text),
			 file.p[0] == '[' ? "%.*s+0x%" PRIx64 : "[%.*s]+0x%" PRIx64, STR_FMT(base),
			 l->address);
	return add_frame(b, str_of(text), file, kind);
}

/* The frame of a line of source. Functions of a runtime are kept apart by where they begin: they
 * share one module, and many have no name of their own. */
static uint32_t add_line_frame(struct builder *b, const struct profile_location *l,
			       const struct profile_function *f, struct str file)
{
	enum frame_kind kind = kind_of(file);
	bool bare = call_tree_unsymbolized(f->name, file) && kind != FRAME_KERNEL;
	struct str name = f->name, source = STR("");
	char text[MAX_NAME];

	if (b->pair && bare)
		return add_bare_frame(b, l, file);
	if (b->pair) {
		buf_clear(&b->name);
		function_name_plain(f->name, frame_type(b->p, l), &b->name);
		name = buf_str(&b->name);
	}
	if (!name.n && !(b->flags & CALL_TREE_BY_FILE))
		name = STR("[unknown]");
	if (kind == FRAME_RUNTIME && !bare && f->file.n) {
		struct str path = f->file;

		if (path.n > MAX_NAME - 32) /* its end tells more */
			path = str_skip(path, path.n - (MAX_NAME - 32));
		snprintf(text, sizeof(text), f->start_line && !b->pair ? "%.*s:%" PRIu32 : "%.*s",
			 STR_FMT(path), f->start_line);
		source = str_of(text);
	}
	return b->name.failed ? INDEX_NONE
			      : add_frame_of(b, name, file, source, bare ? FRAME_UNKNOWN : kind);
}

/* Gives each location and each of its lines a frame, so that a sample's walk touches no string. */
static int add_frames(struct builder *b)
{
	for (size_t i = 1; i < b->p->n_locations; i++) { /* 0 is the null entry */
		const struct profile_location *l = &b->p->locations[i];
		struct str file = b->p->mappings[l->mapping].file;

		for (uint32_t k = l->line_start; k < l->line_start + l->n_lines; k++) {
			b->line_frames[k] =
				add_line_frame(b, l, &b->p->functions[b->p->lines[k].function],
					       file);
			if (b->line_frames[k] == INDEX_NONE)
				return -ENOMEM;
		}
		if (l->n_lines == 0)
			b->location_frames[i] = add_bare_frame(b, l, file);
		if (b->location_frames[i] == INDEX_NONE)
			return -ENOMEM;
	}
	return 0;
}

static bool note_key(struct call_tree *t, uint32_t key)
{
	vec_each (&t->keys, known)
		if (*known == key)
			return true;
	return vec_push(&t->keys, key);
}

/* The set of a sample's labels, INDEX_NONE when memory is short. */
static uint32_t add_labels(struct builder *b, const struct profile_sample *s)
{
	uint32_t pairs[2 * MAX_LABELS], n = 0;

	for (uint32_t i = 0; i < s->n_labels && i < MAX_LABELS; i++) {
		const struct profile_label *label = &b->p->labels[s->label_start + i];
		struct str text = label->text;
		char number[24];

		if (b->pair && (!text.n || str_is(label->key, "pid") || str_is(label->key, "tid")))
			continue;
		if (!text.n) {
			snprintf(number, sizeof(number), "%" PRId64, label->number);
			text = str_of(number);
		}
		pairs[n] = intern_add(&b->t->strings, label->key);
		pairs[n + 1] = intern_add(&b->t->strings, str_first(text, MAX_NAME));
		if (pairs[n] == INDEX_NONE || pairs[n + 1] == INDEX_NONE ||
		    !note_key(b->t, pairs[n]))
			return INDEX_NONE;
		n += 2;
	}
	check(n <= 2 * MAX_LABELS);
	return add_record(&b->t->sets, pairs, n * sizeof(*pairs));
}

static uint32_t add_node(struct call_tree *t, uint32_t parent, uint32_t frame)
{
	struct node node = {parent, frame};

	return parent == INDEX_NONE ? INDEX_NONE : add_record(&t->nodes, &node, sizeof(node));
}

static uint32_t add_stack(struct builder *b, const struct profile_sample *s)
{
	uint32_t node = s->n_frames ? 0 : add_node(b->t, 0, b->no_stack);

	for (uint32_t i = s->n_frames; i > 0; i--) {
		uint32_t location = b->p->frames[s->frame_start + i - 1];
		const struct profile_location *l = &b->p->locations[location];

		if (l->n_lines == 0)
			node = add_node(b->t, node, b->location_frames[location]);
		for (uint32_t k = l->n_lines; k > 0; k--)
			node = add_node(b->t, node, b->line_frames[l->line_start + k - 1]);
	}
	return node;
}

static int add_sample(struct builder *b, size_t index)
{
	const struct profile_sample *s = &b->p->samples[index];
	const int64_t *values = b->p->values + index * b->p->n_types;
	struct call_tree *t = b->t;
	struct leaf leaf = {add_stack(b, s), add_labels(b, s), b->side};
	struct leaf_count *count;
	uint32_t id;

	if (leaf.node == INDEX_NONE || leaf.labels == INDEX_NONE || !vec_reserve(&t->counts, 1))
		return -ENOMEM;
	id = add_record(&t->leaves, &leaf, sizeof(leaf));
	if (id == INDEX_NONE)
		return -ENOMEM;
	check(id <= t->counts.n);
	if (id == t->counts.n)
		t->counts.p[t->counts.n++] = (struct leaf_count){0};
	count = &t->counts.p[id];
	count->samples = pprof_sum(count->samples, values[b->sample_type]);
	count->value = pprof_sum(count->value, values[t->value_type]);
	return 0;
}

bool call_tree_sample_type(const struct profile *p, size_t *ret)
{
	bool found = false;

	for (size_t i = 0; i < p->n_types; i++)
		if (str_is(p->types[i].type, "samples") && str_is(p->types[i].unit, "count")) {
			*ret = i;
			found = true;
		}
	return found;
}

static int begin(struct builder *b)
{
	struct call_tree *t = b->t;

	if (add_frame(b, STR(""), STR(""), FRAME_MARKER) == INDEX_NONE ||
	    add_node(t, 0, 0) == INDEX_NONE || add_record(&t->sets, "", 0) == INDEX_NONE)
		return -ENOMEM;
	b->no_stack = add_frame(b, STR("[no stack]"), STR(""), FRAME_MARKER);
	return b->no_stack == INDEX_NONE ? -ENOMEM : 0;
}

static int add_profile(struct builder *b, const struct profile *p, uint32_t side)
{
	_cleanup_(freep) uint32_t *line_frames = calloc(p->n_lines + 1, sizeof(*line_frames));
	_cleanup_(freep)
		uint32_t *location_frames = calloc(p->n_locations + 1, sizeof(*location_frames));
	int r;

	if (!line_frames || !location_frames)
		return -ENOMEM;
	b->p = p;
	b->side = side;
	b->line_frames = line_frames;
	b->location_frames = location_frames;
	b->t->value_type = b->sample_type = p->default_type;
	if (!call_tree_sample_type(p, &b->sample_type))
		b->t->no_samples = true;
	r = add_frames(b);
	for (size_t i = 0; i < p->n_samples && r == 0; i++)
		r = add_sample(b, i);
	return r;
}

static int build(const struct profile *const *profiles, uint32_t n, uint32_t flags,
		 struct call_tree **ret)
{
	struct builder b = {.t = calloc(1, sizeof(*b.t)), .flags = flags, .pair = n > 1};
	int r = b.t ? begin(&b) : -ENOMEM;

	for (uint32_t i = 0; i < n && r == 0; i++)
		r = add_profile(&b, profiles[i], i);
	table_free(&b.same);
	buf_free(&b.name);
	if (r < 0)
		call_tree_free(b.t);
	else
		*ret = b.t;
	return r;
}

int call_tree_build(const struct profile *p, uint32_t flags, struct call_tree **ret)
{
	return build(&p, 1, flags, ret);
}

int call_tree_build_pair(const struct profile *before, const struct profile *after,
			 struct call_tree **ret)
{
	return build((const struct profile *const[]){before, after}, 2, 0, ret);
}

uint32_t call_tree_label(const struct call_tree *t, uint32_t set, uint32_t key)
{
	struct str record = table_get(&t->sets, set);
	const uint32_t *pairs = (const void *)record.p;

	check(record.n % (2 * sizeof(*pairs)) == 0);
	for (size_t i = 0; i < record.n / sizeof(*pairs); i += 2)
		if (pairs[i] == key)
			return pairs[i + 1];
	return 0;
}

uint32_t call_tree_key(const struct call_tree *t, struct str name)
{
	vec_each (&t->keys, key)
		if (str_eq(intern_get(&t->strings, *key), name))
			return *key;
	return 0;
}

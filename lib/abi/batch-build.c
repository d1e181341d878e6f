/* SPDX-License-Identifier: Apache-2.0 */
/* Building batches. While it is built, a batch is one growing array per column with a hash index
 * beside those that are interned; batch-finish.c lays the arrays out in one segment. A record is
 * interned by its first `key` bytes, so a location can get its lines later without becoming another
 * location.
 *
 * Contracts in batch-build.h. */
#include "abi/batch-parts.h"

#include "base/check.h"
#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The part of a location by which two are the same. */
#define LOCATION_KEY offsetof(struct andiron_location, line_start)

static const struct {
	uint32_t elem_size, key;
	bool null_entry;
} shapes[N_COLUMNS] = {
	[ANDIRON_COL_STRING] = {sizeof(struct andiron_string), 0, true},
	[ANDIRON_COL_FUNCTION] = {sizeof(struct andiron_function), sizeof(struct andiron_function),
				  true},
	[ANDIRON_COL_LINE] = {sizeof(struct andiron_line), 0, false},
	[ANDIRON_COL_LOCATION] = {sizeof(struct andiron_location), LOCATION_KEY, true},
	[ANDIRON_COL_MAPPING] = {sizeof(struct andiron_mapping), sizeof(struct andiron_mapping),
				 true},
	[ANDIRON_COL_STACK] = {sizeof(struct andiron_stack), 0, true},
	[ANDIRON_COL_FRAME] = {sizeof(uint32_t), 0, false},
	[ANDIRON_COL_ATTRIBUTE] = {sizeof(struct andiron_attribute),
				   sizeof(struct andiron_attribute), true},
	[ANDIRON_COL_ATTR_INDEX] = {sizeof(uint32_t), 0, false},
	[ANDIRON_COL_TYPE] = {sizeof(struct andiron_profile_type),
			      sizeof(struct andiron_profile_type), false},
	[ANDIRON_COL_GROUP] = {sizeof(struct andiron_group), 0, false},
	[ANDIRON_COL_ROW] = {sizeof(struct andiron_row), 0, false},
	[ANDIRON_COL_LOSS] = {sizeof(struct andiron_loss), 0, false},
	[ANDIRON_COL_ENCODED] = {sizeof(struct andiron_encoded), 0, false},
};

/* The columns that begin with what the parent's hold. */
static const uint32_t derived[] = {ANDIRON_COL_STRING, ANDIRON_COL_FUNCTION, ANDIRON_COL_LINE,
				   ANDIRON_COL_LOCATION, 0};
static const uint32_t regrouped[] = {ANDIRON_COL_STRING, ANDIRON_COL_ATTRIBUTE,
				     ANDIRON_COL_ATTR_INDEX, 0};

static void *fail(struct batch_builder *b, int code)
{
	if (!b->failed)
		b->failed = code;
	return NULL;
}

/* Room for n records at the end of a table, zeroed; NULL on failure. */
static void *extend(struct batch_builder *b, uint32_t column, size_t n)
{
	struct table *t = &b->tables[column];
	char *p;

	if (b->failed)
		return NULL;
	if (t->n + n > ANDIRON_BATCH_MAX_BYTES / t->elem_size)
		return fail(b, -E2BIG);
	if (!vec_grow((void **)&t->p, &t->capacity, t->n + n, t->elem_size))
		return fail(b, -ENOMEM);
	p = t->p + t->n * t->elem_size;
	if (n)
		memset(p, 0, n * t->elem_size);
	t->n += n;
	return p;
}

static void shape_tables(struct batch_builder *b)
{
	for (uint32_t c = 1; c < N_COLUMNS; c++) {
		struct table *t = &b->tables[c];

		t->elem_size = shapes[c].elem_size;
		t->key = shapes[c].key;
		t->null_entry = shapes[c].null_entry;
	}
}

static struct batch_builder *checked(struct batch_builder *b)
{
	if (!b->failed)
		return b;
	batch_builder_free(b);
	return NULL;
}

struct batch_builder *batch_builder_new(void)
{
	struct batch_builder *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->bytes.limit = ANDIRON_BATCH_MAX_BYTES;
	shape_tables(b);
	for (uint32_t c = 1; c < N_COLUMNS; c++)
		if (b->tables[c].null_entry)
			extend(b, c, 1);
	return checked(b);
}

void batch_builder_free(struct batch_builder *b)
{
	if (!b)
		return;
	for (uint32_t c = 0; c < N_COLUMNS; c++) {
		free(b->tables[c].p);
		index_free(&b->tables[c].index);
	}
	vec_each (&b->held, h)
		h->objects->release(h->self, h->id);
	vec_free(&b->held);
	vec_free(&b->runs);
	index_free(&b->run_index);
	buf_free(&b->bytes);
	if (b->parent)
		batch_release(b->parent);
	free(b);
}

static void copy_column(struct batch_builder *b, const struct batch_view *v, uint32_t column)
{
	const struct batch_column *from = &v->columns[column];
	uint32_t size = b->tables[column].elem_size;
	size_t n = from->count ? from->count : b->tables[column].null_entry;
	char *to = extend(b, column, n);

	for (size_t i = 0; to && i < from->count; i++)
		memcpy(to + i * size, from->base + i * from->elem_size,
		       from->elem_size < size ? from->elem_size : size);
}

static struct batch_builder *derive(const struct andiron_batch *parent, const uint32_t *columns)
{
	struct batch_builder *b = calloc(1, sizeof(*b));
	struct batch_view v;

	if (!b)
		return NULL;
	shape_tables(b);
	b->bytes.limit = ANDIRON_BATCH_MAX_BYTES;
	b->segment = parent->n_segments;
	b->samples = parent->samples;
	if (batch_view_init(&v, parent) < 0)
		fail(b, -EINVAL);
	for (; *columns && !b->failed; columns++)
		copy_column(b, &v, *columns);
	batch_retain(parent);
	b->parent = parent;
	return checked(b);
}

struct batch_builder *batch_derive(const struct andiron_batch *parent)
{
	return derive(parent, derived);
}

struct batch_builder *batch_regroup(const struct andiron_batch *parent)
{
	struct batch_builder *b = derive(parent, regrouped);

	if (!b)
		return NULL;
	b->samples = 0;
	b->tables[ANDIRON_COL_GROUP].replaced = true;
	b->tables[ANDIRON_COL_ROW].replaced = true;
	b->tables[ANDIRON_COL_ENCODED].replaced = true;
	return b;
}

struct probe {
	const struct batch_builder *b;
	const struct table *table;
	const void *key;
	size_t n;
};

static bool same_record(const void *context, uint32_t position)
{
	const struct probe *p = context;

	return memcmp(p->table->p + (size_t)position * p->table->elem_size, p->key, p->n) == 0;
}

/* Finds the record or appends it. */
static uint32_t intern_record(struct batch_builder *b, uint32_t column, const void *record)
{
	struct table *t = &b->tables[column];
	struct probe probe = {b, t, record, t->key};
	uint64_t hash = hash_bytes(record, t->key);
	uint32_t i = index_find(&t->index, hash, same_record, &probe);
	void *room;

	if (i != INDEX_NONE)
		return i;
	room = extend(b, column, 1);
	if (!room)
		return INDEX_NONE;
	memcpy(room, record, t->elem_size);
	i = (uint32_t)t->n - 1;
	if (index_add(&t->index, hash, i) < 0) {
		fail(b, -ENOMEM);
		return INDEX_NONE;
	}
	return i;
}

static bool same_string(const void *context, uint32_t position)
{
	const struct probe *p = context;
	struct andiron_string s;

	memcpy(&s, p->table->p + (size_t)position * sizeof(s), sizeof(s));
	return s.length == p->n && memcmp(p->b->bytes.p + s.offset, p->key, p->n) == 0;
}

uint32_t batch_add_string(struct batch_builder *b, struct str s)
{
	struct table *t = &b->tables[ANDIRON_COL_STRING];
	struct probe probe = {b, t, s.p, s.n};
	uint64_t hash = hash_str(s);
	struct andiron_string *room, record = {b->bytes.n, (uint32_t)s.n, b->segment};
	uint32_t i;

	if (s.n == 0)
		return 0;
	i = index_find(&t->index, hash, same_string, &probe);
	if (i != INDEX_NONE)
		return i;
	room = extend(b, ANDIRON_COL_STRING, 1);
	if (!room)
		return INDEX_NONE;
	*room = record;
	i = (uint32_t)t->n - 1;
	if (buf_str_append(&b->bytes, s) < 0 || index_add(&t->index, hash, i) < 0) {
		fail(b, s.n > ANDIRON_BATCH_MAX_BYTES - b->bytes.n ? -E2BIG : -ENOMEM);
		return INDEX_NONE;
	}
	return i;
}

uint32_t batch_add_function(struct batch_builder *b, const struct andiron_function *f)
{
	return intern_record(b, ANDIRON_COL_FUNCTION, f);
}

uint32_t batch_add_mapping(struct batch_builder *b, const struct andiron_mapping *m)
{
	return intern_record(b, ANDIRON_COL_MAPPING, m);
}

uint32_t batch_add_location(struct batch_builder *b, const struct andiron_location *l)
{
	return intern_record(b, ANDIRON_COL_LOCATION, l);
}

static struct andiron_location *location_of(struct batch_builder *b, uint32_t i)
{
	check(i < b->tables[ANDIRON_COL_LOCATION].n);
	return (struct andiron_location *)(void *)b->tables[ANDIRON_COL_LOCATION].p + i;
}

bool batch_set_lines(struct batch_builder *b, uint32_t location, const struct andiron_line *lines,
		     uint32_t n)
{
	size_t start = b->tables[ANDIRON_COL_LINE].n;
	struct andiron_line *room = extend(b, ANDIRON_COL_LINE, n);
	struct andiron_location *l;

	if (!room)
		return false;
	memcpy(room, lines, n * sizeof(*lines));
	l = location_of(b, location);
	check(l->n_lines == 0);
	l->line_start = (uint32_t)start;
	l->n_lines = n;
	return true;
}

void batch_set_tried(struct batch_builder *b, uint32_t location)
{
	location_of(b, location)->flags |= ANDIRON_LOCATION_UNSYMBOLIZED;
}

uint32_t batch_add_named(struct batch_builder *b, const struct andiron_location *l,
			 const struct andiron_line *lines, uint32_t n)
{
	uint32_t i = b->failed ? INDEX_NONE : batch_add_location(b, l);

	if (!b->failed && location_of(b, i)->n_lines == 0)
		batch_set_lines(b, i, lines, n);
	return b->failed ? INDEX_NONE : i;
}

/* Markers have no address: their text keeps them apart as locations. */
uint32_t batch_add_marker(struct batch_builder *b, struct str text)
{
	return batch_add_marker_of(b, text, STR_NULL);
}

uint32_t batch_add_marker_of(struct batch_builder *b, struct str text, struct str frame_type)
{
	struct andiron_function function = {.name = batch_add_string(b, text),
					    .file = batch_add_string(b, frame_type)};
	struct andiron_location marker = {.kind = ANDIRON_FRAME_MARKER, .runtime = function.name};
	struct andiron_line line = {.function = batch_add_function(b, &function)};

	return batch_add_named(b, &marker, &line, 1);
}

static bool same_stack(const void *context, uint32_t position)
{
	const struct probe *p = context;
	const struct table *frames = &p->b->tables[ANDIRON_COL_FRAME];
	struct andiron_stack s;

	memcpy(&s, p->table->p + (size_t)position * sizeof(s), sizeof(s));
	return s.length * sizeof(uint32_t) == p->n &&
	       memcmp(frames->p + s.start * sizeof(uint32_t), p->key, p->n) == 0;
}

uint32_t batch_add_stack(struct batch_builder *b, const uint32_t *locations, uint32_t n)
{
	struct table *t = &b->tables[ANDIRON_COL_STACK];
	struct probe probe = {b, t, locations, n * sizeof(*locations)};
	uint64_t hash = hash_bytes(locations, n * sizeof(*locations));
	struct andiron_stack *room;
	uint32_t i, *frames;

	if (n == 0)
		return 0;
	i = index_find(&t->index, hash, same_stack, &probe);
	if (i != INDEX_NONE)
		return i;
	frames = extend(b, ANDIRON_COL_FRAME, n);
	if (!frames)
		return INDEX_NONE;
	memcpy(frames, locations, n * sizeof(*locations));
	room = extend(b, ANDIRON_COL_STACK, 1);
	if (!room)
		return INDEX_NONE;
	*room = (struct andiron_stack){(uint32_t)b->tables[ANDIRON_COL_FRAME].n - n, n};
	i = (uint32_t)t->n - 1;
	if (index_add(&t->index, hash, i) < 0) {
		fail(b, -ENOMEM);
		return INDEX_NONE;
	}
	return i;
}

static uint32_t add_attribute(struct batch_builder *b, struct str key, uint32_t kind,
			      uint64_t value)
{
	struct andiron_attribute a = {
		.key = batch_add_string(b, key), .kind = kind, .value = value};

	return b->failed ? INDEX_NONE : intern_record(b, ANDIRON_COL_ATTRIBUTE, &a);
}

uint32_t batch_add_str_attribute(struct batch_builder *b, struct str key, struct str value)
{
	return add_attribute(b, key, ANDIRON_ATTRIBUTE_STRING, batch_add_string(b, value));
}

uint32_t batch_add_int_attribute(struct batch_builder *b, struct str key, int64_t value)
{
	return add_attribute(b, key, ANDIRON_ATTRIBUTE_INT, (uint64_t)value);
}

static bool same_run(const void *context, uint32_t position)
{
	const struct probe *p = context;
	const struct run *run = &p->b->runs.p[position];
	const struct table *pool = &p->b->tables[ANDIRON_COL_ATTR_INDEX];

	return run->n * sizeof(uint32_t) == p->n &&
	       memcmp(pool->p + run->start * sizeof(uint32_t), p->key, p->n) == 0;
}

uint32_t batch_add_attributes(struct batch_builder *b, const uint32_t *attributes, uint32_t n)
{
	struct probe probe = {b, NULL, attributes, n * sizeof(*attributes)};
	uint64_t hash = hash_bytes(attributes, n * sizeof(*attributes));
	uint32_t i, start = (uint32_t)b->tables[ANDIRON_COL_ATTR_INDEX].n, *room;

	if (n == 0)
		return 0;
	i = index_find(&b->run_index, hash, same_run, &probe);
	if (i != INDEX_NONE)
		return b->runs.p[i].start;
	room = extend(b, ANDIRON_COL_ATTR_INDEX, n);
	if (!room)
		return INDEX_NONE;
	memcpy(room, attributes, n * sizeof(*attributes));
	if (!vec_push(&b->runs, ((struct run){start, n})) ||
	    index_add(&b->run_index, hash, (uint32_t)b->runs.n - 1) < 0) {
		fail(b, -ENOMEM);
		return INDEX_NONE;
	}
	return start;
}

uint32_t batch_add_type(struct batch_builder *b, const struct andiron_profile_type *type)
{
	return intern_record(b, ANDIRON_COL_TYPE, type);
}

uint32_t batch_group_begin(struct batch_builder *b, const uint32_t *labels, uint32_t n)
{
	uint32_t start = batch_add_attributes(b, labels, n);
	struct andiron_group *room = extend(b, ANDIRON_COL_GROUP, 1);

	if (!room)
		return INDEX_NONE;
	*room = (struct andiron_group){.label_start = start,
				       .n_labels = n,
				       .row_start = (uint32_t)b->tables[ANDIRON_COL_ROW].n};
	return (uint32_t)b->tables[ANDIRON_COL_GROUP].n - 1;
}

bool batch_add_row(struct batch_builder *b, const struct andiron_row *row)
{
	struct table *groups = &b->tables[ANDIRON_COL_GROUP];
	struct andiron_row *room = extend(b, ANDIRON_COL_ROW, 1);

	if (!room)
		return false;
	check(groups->n > 0);
	*room = *row;
	((struct andiron_group *)(void *)groups->p)[groups->n - 1].n_rows++;
	b->samples += row->samples;
	return true;
}

bool batch_add_encoded(struct batch_builder *b, const struct andiron_encoded *e, struct str bytes)
{
	const struct table *groups = &b->tables[ANDIRON_COL_GROUP];
	struct andiron_encoded *room = extend(b, ANDIRON_COL_ENCODED, 1);

	if (!room)
		return false;
	check(groups->n > 0 && bytes.n > 0);
	if (bytes.n > ANDIRON_BATCH_MAX_BYTES - b->bytes.n)
		return fail(b, -E2BIG);
	*room = *e;
	room->offset = b->bytes.n;
	room->length = (uint32_t)bytes.n;
	room->segment = b->segment;
	room->group = (uint32_t)groups->n - 1;
	if (buf_str_append(&b->bytes, bytes) < 0)
		return fail(b, -ENOMEM);
	b->samples++;
	return true;
}

bool batch_keep_encoded(struct batch_builder *b, const struct andiron_encoded *e)
{
	const struct table *groups = &b->tables[ANDIRON_COL_GROUP];
	struct andiron_encoded *room = extend(b, ANDIRON_COL_ENCODED, 1);

	if (!room)
		return false;
	check(groups->n > 0);
	*room = *e;
	room->group = (uint32_t)groups->n - 1;
	b->samples++;
	return true;
}

bool batch_add_loss(struct batch_builder *b, struct str reason, uint64_t samples)
{
	struct andiron_loss loss = {.samples = samples, .reason = batch_add_string(b, reason)};
	struct andiron_loss *room = extend(b, ANDIRON_COL_LOSS, 1);

	if (!room)
		return false;
	*room = loss;
	return true;
}

bool batch_hold_object(struct batch_builder *b, const struct andiron_extension *objects,
		       uint64_t object)
{
	struct held_object held = {objects->table, objects->self, object};

	if (vec_push(&b->held, held))
		return true;
	held.objects->release(held.self, object);
	fail(b, -ENOMEM);
	return false;
}

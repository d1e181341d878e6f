/* SPDX-License-Identifier: Apache-2.0 */
/* Reading batches. Contracts in batch-view.h. */
#include "abi/batch-view.h"

#include <errno.h>
#include <string.h>

static int resolve(const struct andiron_batch *batch, const struct andiron_column *c,
		   struct batch_column *ret)
{
	const struct andiron_segment *s;
	uint64_t bytes;

	if (c->segment >= batch->n_segments || c->elem_size == 0 || c->offset % 8 ||
	    c->count > UINT32_MAX)
		return -EINVAL;
	s = &batch->segments[c->segment];
	if ((uintptr_t)s->base % 8 || __builtin_mul_overflow(c->count, c->elem_size, &bytes) ||
	    c->offset > s->size || bytes > s->size - c->offset)
		return -EINVAL;
	*ret = (struct batch_column){(const unsigned char *)s->base + c->offset, c->count,
				     c->elem_size};
	return 0;
}

/* Encoded profiles are few and large: all are looked at here, so that nobody does it later. */
static int check_encoded(const struct batch_view *v)
{
	for (uint64_t i = 0; i < batch_count(v, ANDIRON_COL_ENCODED); i++) {
		struct andiron_encoded e = batch_encoded(v, (uint32_t)i);

		if (!batch_encoded_bytes(v, &e).n || e.group >= batch_count(v, ANDIRON_COL_GROUP))
			return -EINVAL;
	}
	return 0;
}

int batch_view_init(struct batch_view *view, const struct andiron_batch *batch)
{
	struct batch_view v = {.batch = batch};

	if (!ANDIRON_KNOWS(batch, andiron_batch, release))
		return -EINVAL;
	for (uint32_t i = 0; i < batch->n_columns; i++) {
		const struct andiron_column *c = &batch->columns[i];

		if (c->id == 0 || c->id > ANDIRON_COL_ENCODED)
			continue;
		if (v.columns[c->id].base || resolve(batch, c, &v.columns[c->id]) < 0)
			return -EINVAL;
	}
	if (check_encoded(&v) < 0)
		return -EINVAL;
	*view = v;
	return 0;
}

/* Copies record i as far as both sides know it; zero beyond. */
static void record(const struct batch_view *v, uint32_t column, uint32_t i, void *out, size_t n)
{
	const struct batch_column *c = &v->columns[column];

	memset(out, 0, n);
	if (i < c->count)
		memcpy(out, c->base + (uint64_t)i * c->elem_size,
		       c->elem_size < n ? c->elem_size : n);
}

#define GETTER(name, type, column)                                                                 \
	struct type batch_##name(const struct batch_view *v, uint32_t i)                           \
	{                                                                                          \
		struct type r;                                                                     \
                                                                                                   \
		record(v, column, i, &r, sizeof(r));                                               \
		return r;                                                                          \
	}

GETTER(function, andiron_function, ANDIRON_COL_FUNCTION)
GETTER(line, andiron_line, ANDIRON_COL_LINE)
GETTER(location, andiron_location, ANDIRON_COL_LOCATION)
GETTER(mapping, andiron_mapping, ANDIRON_COL_MAPPING)
GETTER(stack, andiron_stack, ANDIRON_COL_STACK)
GETTER(attribute, andiron_attribute, ANDIRON_COL_ATTRIBUTE)
GETTER(type, andiron_profile_type, ANDIRON_COL_TYPE)
GETTER(group, andiron_group, ANDIRON_COL_GROUP)
GETTER(row, andiron_row, ANDIRON_COL_ROW)
GETTER(loss, andiron_loss, ANDIRON_COL_LOSS)
GETTER(encoded, andiron_encoded, ANDIRON_COL_ENCODED)

uint32_t batch_frame(const struct batch_view *v, uint32_t i)
{
	uint32_t index;

	record(v, ANDIRON_COL_FRAME, i, &index, sizeof(index));
	return index;
}

struct andiron_attribute batch_attribute_at(const struct batch_view *v, uint32_t i)
{
	uint32_t index;

	record(v, ANDIRON_COL_ATTR_INDEX, i, &index, sizeof(index));
	return batch_attribute(v, index);
}

static struct str bytes_at(const struct batch_view *v, uint32_t at, uint64_t offset,
			   uint32_t length)
{
	const struct andiron_segment *segment;

	if (at >= v->batch->n_segments)
		return STR_NULL;
	segment = &v->batch->segments[at];
	if (offset > segment->size || length > segment->size - offset)
		return STR_NULL;
	return (struct str){(const char *)segment->base + offset, length};
}

struct str batch_str(const struct batch_view *v, uint32_t i)
{
	struct andiron_string s;

	record(v, ANDIRON_COL_STRING, i, &s, sizeof(s));
	return bytes_at(v, s.segment, s.offset, s.length);
}

struct str batch_encoded_bytes(const struct batch_view *v, const struct andiron_encoded *e)
{
	return bytes_at(v, e->segment, e->offset, e->length);
}

/* Finds the attribute `key` among ATTR_INDEX [start, +n). */
static bool find(const struct batch_view *v, uint32_t start, uint32_t n, struct str key,
		 struct andiron_attribute *ret)
{
	for (uint64_t i = start;
	     i < (uint64_t)start + n && i < batch_count(v, ANDIRON_COL_ATTR_INDEX); i++) {
		struct andiron_attribute a = batch_attribute_at(v, (uint32_t)i);

		if (str_eq(batch_str(v, a.key), key)) {
			*ret = a;
			return true;
		}
	}
	return false;
}

static bool find_str(const struct batch_view *v, uint32_t start, uint32_t n, struct str key,
		     struct str *ret)
{
	struct andiron_attribute a;

	if (!find(v, start, n, key, &a) || a.kind != ANDIRON_ATTRIBUTE_STRING ||
	    a.value > UINT32_MAX)
		return false;
	*ret = batch_str(v, (uint32_t)a.value);
	return true;
}

bool batch_row_str(const struct batch_view *v, const struct andiron_row *row, struct str key,
		   struct str *ret)
{
	return find_str(v, row->attr_start, row->n_attrs, key, ret);
}

bool batch_row_int(const struct batch_view *v, const struct andiron_row *row, struct str key,
		   int64_t *ret)
{
	struct andiron_attribute a;

	if (!find(v, row->attr_start, row->n_attrs, key, &a) || a.kind != ANDIRON_ATTRIBUTE_INT)
		return false;
	*ret = (int64_t)a.value;
	return true;
}

bool batch_group_label(const struct batch_view *v, const struct andiron_group *group,
		       struct str key, struct str *ret)
{
	return find_str(v, group->label_start, group->n_labels, key, ret);
}

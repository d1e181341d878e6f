/* SPDX-License-Identifier: Apache-2.0 */
/* Objects from JSON, by the same tables. Contract in object.h. */
#include "k8s-discovery/objects/object.h"

#include "k8s-discovery/objects/proto.h"

#include <errno.h>

#define LENGTH_ROOM 5

static void put(struct buf *b, uint64_t value)
{
	char *p = buf_reserve(b, 10);

	if (p)
		b->n += (size_t)(proto_put(p, value) - p);
}

static void put_text(struct buf *b, uint32_t number, struct str text)
{
	put(b, number << 3 | PROTO_BYTES);
	put(b, text.n);
	buf_str_append(b, text);
}

/* A message whose length is not known yet: where it begins, and its end. */
static size_t open_part(struct buf *b, uint32_t number)
{
	put(b, number << 3 | PROTO_BYTES);
	if (buf_reserve(b, LENGTH_ROOM))
		b->n += LENGTH_ROOM;
	return b->n;
}

static void close_part(struct buf *b, size_t begin)
{
	size_t n = b->n - begin;
	char *size;

	if (b->failed)
		return;
	size = b->p + begin - LENGTH_ROOM;
	memmove(size + proto_length(n), b->p + begin, n);
	b->n = (size_t)(proto_put(size, n) - b->p) + n;
}

static struct str text_of(const json_t *s)
{
	return json_is_string(s) ? (struct str){json_string_value(s), json_string_length(s)}
				 : STR_NULL;
}

static void keep_map(struct object *o, const struct keep_field *k, uint32_t number,
		     const json_t *map)
{
	size_t before = o->kept.n;
	bool annotations = k->how == KEEP_ANNOTATIONS;
	const char *key;
	json_t *value;

	/* jansson's iteration takes a non-const object and does not change it. */
	json_object_foreach((json_t *)(uintptr_t)map, key, value)
	{
		size_t begin;

		o->initial_end |= annotations && strcmp(key, INITIAL_EVENTS_END) == 0;
		if (annotations && !object_wants(o, str_of(key)))
			continue;
		begin = open_part(&o->kept, number);
		put_text(&o->kept, 1, str_of(key));
		put_text(&o->kept, 2, text_of(value));
		close_part(&o->kept, begin);
	}
	if (annotations)
		o->annotation_bytes += (uint32_t)(o->kept.n - before);
}

static void walk_part(struct object *o, const struct part *part, const json_t *json);

static void keep_part(struct object *o, const struct keep_field *k, uint32_t number,
		      const json_t *json)
{
	size_t mark = o->kept.n, begin;

	if (!json_is_object(json))
		return;
	begin = open_part(&o->kept, number);
	walk_part(o, k->part, json);
	if (!o->kept.failed && k->wanted &&
	    !k->wanted((struct str){o->kept.p + begin, o->kept.n - begin}))
		o->kept.n = mark;
	else
		close_part(&o->kept, begin);
}

static void keep_one(struct object *o, const struct keep_field *k, uint32_t number,
		     const json_t *json)
{
	struct buf *b = &o->kept;

	switch (k->how) {
	case KEEP_TEXT:
		if (json_is_string(json))
			put_text(b, number, text_of(json));
		break;
	case KEEP_NUMBER:
		if (!json_is_integer(json) && !json_is_boolean(json))
			break;
		put(b, number << 3 | PROTO_VARINT);
		put(b, json_is_integer(json) ? (uint64_t)json_integer_value(json)
					     : json_is_true(json));
		break;
	case KEEP_PART:
		keep_part(o, k, number, json);
		break;
	case KEEP_LABELS:
	case KEEP_ANNOTATIONS:
		keep_map(o, k, number, json);
		break;
	case KEEP_NAMESPACE:
		o->namespace_ = text_of(json);
		break;
	case KEEP_NAME:
		o->name = text_of(json);
		break;
	case KEEP_VERSION:
		o->version = text_of(json);
		break;
	case KEEP_NOT:
	default:
		break;
	}
}

static void walk_part(struct object *o, const struct part *part, const json_t *json)
{
	for (uint32_t number = 1; number < part->n; number++) {
		const struct keep_field *k = &part->fields[number];
		const json_t *member, *item;
		size_t i;

		if (k->how == KEEP_NOT)
			continue;
		member = *k->json ? json_object_get(json, k->json) : json;
		if (json_is_array(member)) {
			json_array_foreach(member, i, item)
			{
				keep_one(o, k, number, item);
			}
		} else if (member) {
			keep_one(o, k, number, member);
		}
	}
}

int object_read_json(enum kind kind, const json_t *json, struct object *o)
{
	o->namespace_ = o->name = o->version = STR_NULL;
	o->initial_end = false;
	o->annotation_bytes = 0;
	buf_clear(&o->kept);
	if (!json_is_object(json))
		return -EPROTO;
	walk_part(o, kinds[kind].part, json);
	return o->kept.failed ? -ENOMEM : 0;
}

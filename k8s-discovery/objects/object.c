/* SPDX-License-Identifier: Apache-2.0 */
/* Objects from protobuf. Contract in object.h.
 *
 * What is kept of a message is never longer than the message: strings are copied as they were
 * written, and a length is written in as many bytes as it needs or fewer. So room for the input is
 * room for the output, and the walk checks no capacity. It goes as deep as the tables do. */
#include "k8s-discovery/objects/object.h"

#include "base/check.h"
#include "k8s-discovery/objects/proto.h"

#include <errno.h>

struct walk {
	struct object *object;
	char *out;
};

static bool walk_part(struct walk *w, const struct part *part, struct proto in);

static void copy(struct walk *w, const unsigned char *from, const unsigned char *to)
{
	size_t n = (size_t)(to - from);

	memcpy(w->out, from, n);
	w->out += n;
}

static bool keep_part(struct walk *w, const struct keep_field *k, const struct proto_field *f)
{
	size_t room = proto_length(f->bytes.n), length, n;
	char *head = w->out, *size;

	copy(w, f->tag, f->data);
	size = w->out;
	w->out += room;
	if (!walk_part(w, k->part, proto_of(f->bytes)))
		return false;
	n = (size_t)(w->out - size) - room;
	if (k->wanted && !k->wanted((struct str){size + room, n})) {
		w->out = head;
		return true;
	}
	length = proto_length(n);
	check(length <= room);
	proto_put(size, n);
	if (length < room)
		memmove(size + length, size + room, n);
	w->out = size + length + n;
	return true;
}

/* An entry of a map; one without sense makes the object malformed. */
static bool keep_entry(struct walk *w, const struct keep_field *k, const struct proto_field *f)
{
	struct proto in = proto_of(f->bytes);
	struct proto_field part;
	struct str key = STR_NULL;
	int r;

	while ((r = proto_next(&in, &part)) > 0)
		if (part.number == 1 && part.type == PROTO_BYTES)
			key = part.bytes;
	if (r < 0)
		return false;
	if (k->how == KEEP_ANNOTATIONS) {
		w->object->initial_end |= str_is(key, INITIAL_EVENTS_END);
		if (!object_wants(w->object, key))
			return true;
		w->object->annotation_bytes += (uint32_t)(f->end - f->tag);
	}
	copy(w, f->tag, f->end);
	return true;
}

static bool keep(struct walk *w, const struct keep_field *k, const struct proto_field *f)
{
	if (k->how == KEEP_NUMBER) {
		if (f->type == PROTO_VARINT)
			copy(w, f->tag, f->end);
		return true;
	}
	if (f->type != PROTO_BYTES)
		return true;
	switch (k->how) {
	case KEEP_TEXT:
		copy(w, f->tag, f->end);
		return true;
	case KEEP_PART:
		return keep_part(w, k, f);
	case KEEP_LABELS:
	case KEEP_ANNOTATIONS:
		return keep_entry(w, k, f);
	case KEEP_NAMESPACE:
		w->object->namespace_ = f->bytes;
		return true;
	case KEEP_NAME:
		w->object->name = f->bytes;
		return true;
	case KEEP_VERSION:
		w->object->version = f->bytes;
		return true;
	case KEEP_NUMBER:
	case KEEP_NOT:
	default:
		absurd("a field that is not kept");
	}
}

static bool walk_part(struct walk *w, const struct part *part, struct proto in)
{
	struct proto_field f;
	int r;

	while ((r = proto_next(&in, &f)) > 0) {
		if (f.number >= part->n || part->fields[f.number].how == KEEP_NOT)
			continue;
		if (!keep(w, &part->fields[f.number], &f))
			return false;
	}
	return r == 0;
}

int object_read(enum kind kind, struct str wire, struct object *o)
{
	struct walk w = {.object = o};

	o->namespace_ = o->name = o->version = STR_NULL;
	o->initial_end = false;
	o->annotation_bytes = 0;
	buf_clear(&o->kept);
	w.out = buf_reserve(&o->kept, wire.n + 1);
	if (!w.out)
		return -ENOMEM;
	if (!walk_part(&w, kinds[kind].part, proto_of(wire)))
		return -EPROTO;
	o->kept.n = (size_t)(w.out - o->kept.p);
	check(o->kept.n <= wire.n);
	return 0;
}

bool object_wants(const struct object *o, struct str annotation)
{
	for (size_t i = 0; o->wanted && i < o->wanted->n; i++)
		if (str_eq(o->wanted->names[i], annotation))
			return true;
	return !o->wanted;
}

void object_fini(struct object *o)
{
	buf_free(&o->kept);
}

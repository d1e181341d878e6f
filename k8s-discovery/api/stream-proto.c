/* SPDX-License-Identifier: Apache-2.0 */
/* Lists and watches in protobuf. A list is read as a nest of three messages (envelope, list, items)
 * whose fields arrive one by one; the outer two are never whole in memory. Fields may come in any
 * order, as the encoding allows. */
#include "k8s-discovery/objects/proto.h"
#include "k8s-discovery/api/stream-private.h"

#include <errno.h>

#define MAX_HEADER 20 /* tag and length, ten bytes each */

/* WatchEvent, Unknown, RawExtension, List, ListMeta, Status: their numbers. */
#define EVENT_TYPE   1u
#define EVENT_OBJECT 2u
#define RAW_BYTES    1u
#define UNKNOWN_RAW  2u
#define LIST_META    1u
#define LIST_ITEM    2u
#define META_VERSION 2u
#define META_NEXT    3u
#define STATUS_TEXT  3u
#define STATUS_CODE  6u

static int damaged(struct error *err)
{
	return error_set(err, -EPROTO,
			 "the answer is damaged: it is not the protobuf encoding that it began as");
}

static int take_object(struct stream *s, struct str wire, int what, struct error *err)
{
	int r = object_read(s->kind, wire, &s->object);

	if (r == -EPROTO)
		return damaged(err);
	if (r < 0)
		return r;
	if (what != STREAM_BOOKMARK && s->object.name.n == 0)
		return error_set(err, -EPROTO,
				 "the answer is damaged: it has an object without a name");
	return stream_emit(s, what);
}

static int take_status(struct stream *s, struct str status)
{
	struct stream_event event = {.what = STREAM_FAILED};
	char text[256] = "no message";
	struct str message = proto_bytes(status, STATUS_TEXT);
	uint64_t code = 0;

	if (message.n)
		stream_printable(message, text, sizeof(text));
	proto_number(status, STATUS_CODE, &code);
	event.code = code < 1000 ? (int)code : 0;
	event.text = text;
	return s->fn(s->context, &event);
}

static int take_frame(struct stream *s, struct str frame, struct error *err)
{
	struct str type = proto_bytes(frame, EVENT_TYPE);
	struct str raw = proto_bytes(proto_bytes(frame, EVENT_OBJECT), RAW_BYTES), object;

	if (!str_starts(raw, (struct str){"k8s", 4}))
		return damaged(err);
	object = proto_bytes(str_skip(raw, 4), UNKNOWN_RAW);
	if (str_is(type, "ADDED") || str_is(type, "MODIFIED"))
		return take_object(s, object, STREAM_SET, err);
	if (str_is(type, "DELETED"))
		return take_object(s, object, STREAM_DELETED, err);
	if (str_is(type, "BOOKMARK"))
		return take_object(s, object, STREAM_BOOKMARK, err);
	if (str_is(type, "ERROR"))
		return take_status(s, object);
	return damaged(err);
}

static int take_meta(struct stream *s, struct str meta)
{
	return stream_keep(&s->version, proto_bytes(meta, META_VERSION)) &&
			       stream_keep(&s->next, proto_bytes(meta, META_NEXT))
		       ? 0
		       : -ENOMEM;
}

/* What follows when a part of the list is done. */
static void next_field(struct stream *s)
{
	if (s->in_list && s->list == 0)
		s->in_list = false;
	s->state = s->in_list ? AT_LIST : AT_ENVELOPE;
}

static int take_part(struct stream *s, struct str part, struct error *err)
{
	enum state state = s->state;

	if (state == AT_MAGIC) {
		if (memcmp(part.p, "k8s", 4) != 0)
			return stream_not_ours(part, err);
		s->state = AT_ENVELOPE;
		return 0;
	}
	if (state == AT_LENGTH) {
		const unsigned char *b = (const unsigned char *)part.p;

		s->need = (uint64_t)b[0] << 24 | (uint64_t)b[1] << 16 | (uint64_t)b[2] << 8 | b[3];
		s->state = AT_FRAME;
		return s->need ? 0 : damaged(err);
	}
	if (state == AT_FRAME) {
		s->state = AT_LENGTH;
		return take_frame(s, part, err);
	}
	next_field(s);
	return state == AT_META ? take_meta(s, part) : take_object(s, part, STREAM_SET, err);
}

/* A tag, and the length where one follows: whole or not yet, in `head`. */
static bool read_header(struct str head, uint64_t *tag, uint64_t *n, size_t *used)
{
	struct proto in = proto_of(head);
	const unsigned char *begin = in.p;
	uint64_t value;

	if (!proto_varint(&in, tag))
		return false;
	*n = 0;
	switch (*tag & 7) {
	case PROTO_BYTES:
		if (!proto_varint(&in, n))
			return false;
		break;
	case PROTO_VARINT:
		if (!proto_varint(&in, &value))
			return false;
		break;
	case PROTO_I64:
		*n = 8;
		break;
	case PROTO_I32:
		*n = 4;
		break;
	default:
		break; /* refused by take_header */
	}
	*used = (size_t)(in.p - begin);
	return true;
}

/* What the content of a field of the list, or of the envelope, is. */
static enum state content_of(const struct stream *s, uint64_t number)
{
	if (!s->in_list)
		return number == UNKNOWN_RAW ? AT_LIST : AT_SKIP;
	return number == LIST_META ? AT_META : number == LIST_ITEM ? AT_ITEM : AT_SKIP;
}

static int take_header(struct stream *s, uint64_t tag, uint64_t n, size_t used, struct error *err)
{
	uint64_t number = tag >> 3, type = tag & 7;

	if (number == 0 || (type > PROTO_BYTES && type != PROTO_I32))
		return damaged(err);
	if (s->in_list) {
		if (used > s->list || n > s->list - used)
			return damaged(err);
		s->list -= used + n;
	}
	s->state = type == PROTO_BYTES ? content_of(s, number) : AT_SKIP;
	s->need = n;
	if (s->state == AT_LIST) {
		s->in_list = s->seen_list = true;
		s->list = n;
		next_field(s);
	} else if (s->state == AT_SKIP && n == 0) {
		next_field(s);
	} else if (s->state != AT_SKIP && n > STREAM_MAX_PART) {
		return -E2BIG;
	}
	return 0;
}

/* Headers are short and may be split: they are gathered byte by byte. */
static int feed_header(struct stream *s, struct str *piece, struct error *err)
{
	uint64_t tag, n;
	size_t used;
	int r;

	do {
		if (piece->n == 0)
			return 0;
		if (s->part.n >= MAX_HEADER)
			return damaged(err);
		r = buf_putc(&s->part, piece->p[0]);
		if (r < 0)
			return r;
		*piece = str_skip(*piece, 1);
	} while (!read_header(buf_str(&s->part), &tag, &n, &used));
	buf_clear(&s->part);
	r = take_header(s, tag, n, used, err);
	/* An empty item or meta is whole already. */
	if (r == 0 && s->need == 0 && (s->state == AT_ITEM || s->state == AT_META))
		r = take_part(s, STR(""), err);
	return r;
}

static void skip(struct stream *s, struct str *piece)
{
	size_t n = s->need < piece->n ? (size_t)s->need : piece->n;

	*piece = str_skip(*piece, n);
	s->need -= n;
	if (s->need == 0)
		next_field(s);
}

/* A part of known size, in place where the piece holds all of it. */
static int feed_part(struct stream *s, struct str *piece, struct error *err)
{
	size_t want;
	int r;

	if (s->state == AT_MAGIC || s->state == AT_LENGTH)
		s->need = 4;
	if (s->need > STREAM_MAX_PART)
		return -E2BIG;
	want = (size_t)s->need - s->part.n;
	if (s->part.n == 0 && piece->n >= want) {
		struct str part = str_first(*piece, want);

		*piece = str_skip(*piece, want);
		return take_part(s, part, err);
	}
	if (s->part.n == 0 && !buf_reserve(&s->part, want))
		return -ENOMEM;
	want = want < piece->n ? want : piece->n;
	r = buf_append(&s->part, piece->p, want);
	if (r < 0)
		return r;
	*piece = str_skip(*piece, want);
	if (s->part.n < s->need)
		return 0;
	r = take_part(s, buf_str(&s->part), err);
	buf_clear(&s->part);
	return r;
}

int stream_proto_feed(struct stream *s, struct str *piece, struct error *err)
{
	if (s->state == AT_ENVELOPE || s->state == AT_LIST)
		return feed_header(s, piece, err);
	if (s->state == AT_SKIP) {
		skip(s, piece);
		return 0;
	}
	return feed_part(s, piece, err);
}

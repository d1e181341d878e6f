/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the protobuf wire format, built for skipping: a field costs a tag and a length, whatever
 * lies in it. Source: the "Encoding" chapter of the Protocol Buffers documentation. Groups, which
 * Kubernetes has none of, are malformed here.
 *
 * A reader is a pair of pointers; no read goes beyond the second. */
#pragma once

#include "base/str.h"

#define PROTO_VARINT 0u
#define PROTO_I64    1u
#define PROTO_BYTES  2u
#define PROTO_I32    5u

struct proto {
	const unsigned char *p, *end;
};

static inline struct proto proto_of(struct str message)
{
	const unsigned char *p = (const unsigned char *)message.p;

	return (struct proto){p, p + message.n};
}

/* One field: `value` of a varint, `bytes` of what has a length. [tag, data) is how its number was
 * written, [tag, end) all of it. */
struct proto_field {
	uint32_t number, type;
	uint64_t value;
	struct str bytes;
	const unsigned char *tag, *data, *end;
};

/* Takes a varint of at most ten bytes off the front; false if there is none. */
static inline bool proto_varint(struct proto *in, uint64_t *ret)
{
	uint64_t value = 0;

	if (in->p < in->end && *in->p < 0x80) {
		*ret = *in->p++;
		return true;
	}
	for (unsigned int shift = 0; in->p < in->end && shift < 70; shift += 7) {
		unsigned char byte = *in->p++;

		if (shift == 63 && byte > 1)
			return false;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			*ret = value;
			return true;
		}
	}
	return false;
}

/* Takes the next field off the front: 1, 0 at the end, -1 if it is malformed. */
static inline int proto_next(struct proto *in, struct proto_field *f)
{
	uint64_t tag, n;

	if (in->p == in->end)
		return 0;
	f->tag = in->p;
	if (!proto_varint(in, &tag) || tag >> 3 == 0 || tag >> 3 > UINT32_MAX >> 3)
		return -1;
	f->data = in->p;
	f->number = (uint32_t)(tag >> 3);
	f->type = tag & 7;
	f->value = 0;
	switch (f->type) {
	case PROTO_BYTES:
		if (!proto_varint(in, &n))
			return -1;
		break;
	case PROTO_VARINT:
		if (!proto_varint(in, &f->value))
			return -1;
		n = 0;
		break;
	case PROTO_I64:
		n = 8;
		break;
	case PROTO_I32:
		n = 4;
		break;
	default:
		return -1;
	}
	if (n > (uint64_t)(in->end - in->p))
		return -1;
	f->bytes = (struct str){(const char *)in->p, (size_t)n};
	in->p += n;
	f->end = in->p;
	return 1;
}

/* The next field of this number that has a length; false where there is none any more. */
static inline bool proto_find(struct proto *in, uint32_t number, struct proto_field *f)
{
	while (proto_next(in, f) > 0)
		if (f->number == number && f->type == PROTO_BYTES)
			return true;
	return false;
}

/* Visits the repeated field `number` of a message. */
#define proto_each(message, number, f)                                                             \
	for (struct proto each_ = proto_of(message); proto_find(&each_, (number), (f));)

/* A field that has a length: of several the last, STR_NULL where it is absent. */
static inline struct str proto_bytes(struct str message, uint32_t number)
{
	struct str last = STR_NULL;
	struct proto_field f;

	proto_each (message, number, &f)
		last = f.bytes;
	return last;
}

/* A varint field: of several the last; false, and *ret untouched, where it is absent. */
static inline bool proto_number(struct str message, uint32_t number, uint64_t *ret)
{
	struct proto in = proto_of(message);
	struct proto_field f;
	bool found = false;

	while (proto_next(&in, &f) > 0) {
		if (f.number != number || f.type != PROTO_VARINT)
			continue;
		*ret = f.value;
		found = true;
	}
	return found;
}

/* How many bytes a varint takes. */
static inline size_t proto_length(uint64_t value)
{
	return (size_t)(63 - __builtin_clzll(value | 1)) / 7 + 1;
}

/* Writes a varint; returns what follows it. */
static inline char *proto_put(char *p, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		*p++ = (char)(value | 0x80);
	*p++ = (char)value;
	return p;
}

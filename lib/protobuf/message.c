/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds around protobuf-c. Contract in message.h. */
#include "protobuf/message.h"

#include "base/check.h"
#include "protobuf/wire.h"

#include <errno.h>

static const ProtobufCFieldDescriptor *find_field(const ProtobufCMessageDescriptor *type,
						  uint32_t number)
{
	return type ? protobuf_c_message_descriptor_get_field(type, number) : NULL;
}

/* A field that the .proto does not name is copied, not parsed: it counts, but has no depth. */
static bool scan(const ProtobufCMessageDescriptor *type, struct str in, unsigned depth,
		 size_t *fields_left)
{
	struct wire_field f;

	if (depth > MESSAGE_MAX_DEPTH)
		return false;
	while (in.n) {
		const ProtobufCFieldDescriptor *field;

		if (!wire_next(&in, &f) || *fields_left == 0)
			return false;
		--*fields_left;
		field = find_field(type, f.number);
		if (!field || field->type != PROTOBUF_C_TYPE_MESSAGE)
			continue;
		if (f.type != WIRE_BYTES ||
		    !scan(field->descriptor, f.bytes, depth + 1, fields_left))
			return false;
	}
	return true;
}

/* The arena, and how far it may grow. */
struct bounded {
	struct arena *arena;
	size_t left;
	int failure;
};

static void *bounded_alloc(void *context, size_t n)
{
	struct bounded *b = context;
	void *p = n <= b->left ? arena_alloc(b->arena, n) : NULL;

	if (p)
		b->left -= n;
	else
		b->failure = n <= b->left ? -ENOMEM : -E2BIG;
	return p;
}

/* The arena frees all at once. */
static void bounded_free(void *context, void *p)
{
}

int message_unpack(const ProtobufCMessageDescriptor *type, struct str in,
		   const struct message_bounds *bounds, struct arena *arena, const void **ret)
{
	struct bounded b = {arena, bounds->memory, 0};
	ProtobufCAllocator allocator = {bounded_alloc, bounded_free, &b};
	size_t fields_left = bounds->fields;
	const void *message;

	check(type && arena && bounds->bytes && bounds->fields && bounds->memory);
	if (in.n > bounds->bytes)
		return -E2BIG;
	if (!scan(type, in, 1, &fields_left))
		return -EBADMSG;
	message = protobuf_c_message_unpack(type, &allocator, in.n, (const uint8_t *)in.p);
	if (!message)
		return b.failure ? b.failure : -EBADMSG;
	*ret = message;
	return 0;
}

void message_pack(const void *message, struct buf *out)
{
	size_t n = protobuf_c_message_get_packed_size(message);
	char *p = buf_reserve(out, n);

	if (!p)
		return;
	check(protobuf_c_message_pack(message, (uint8_t *)p) == n);
	out->n += n;
}

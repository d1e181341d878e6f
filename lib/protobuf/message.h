/* SPDX-License-Identifier: Apache-2.0 */
/* Small protobuf messages through protobuf-c, whose code is generated from the .proto files beside
 * this header.
 *
 * Answers come from servers and are untrusted. protobuf-c allocates as the input asks for, and
 * copies fields that the .proto does not name. So a message is scanned before it is unpacked: its
 * nesting, the number of its fields and all lengths are bounded, and the allocator that protobuf-c
 * gets refuses more than the message can need.
 *
 * The .proto files name the fields that we use. Texts are `bytes` there, which has the same wire
 * format as `string`: then a slice needs no NUL, and what is read may hold one. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

#include <protobuf-c/protobuf-c.h>

#define MESSAGE_MAX_DEPTH 8u /* messages within messages */

struct message_bounds {
	size_t bytes;  /* of the input */
	size_t fields; /* of all levels together */
	size_t memory; /* what unpacking may take */
};

/* What a server's answer may be, and what unpacking it takes at most: a copy of it, and some 100
 * bytes a field. */
#define MESSAGE_ANSWER                                                                             \
	((struct message_bounds){                                                                  \
		.bytes = (size_t)64 << 20, .fields = 4096, .memory = (size_t)66 << 20})

/* Unpacks a message into the arena: 0 and *ret, -EBADMSG (malformed, nested too deeply, or too many
 * fields), -E2BIG (more bytes, or more memory needed, than the bounds allow) or -ENOMEM. The
 * message lives as long as the arena and does not refer to `in`. O(bytes). */
int message_unpack(const ProtobufCMessageDescriptor *type, struct str in,
		   const struct message_bounds *bounds, struct arena *arena, const void **ret);

/* Appends the message. Failure is left to the buffer's `failed`. O(bytes). */
void message_pack(const void *message, struct buf *out);

static inline ProtobufCBinaryData message_bytes(struct str s)
{
	return (ProtobufCBinaryData){s.n, (uint8_t *)(uintptr_t)s.p};
}

static inline struct str message_str(ProtobufCBinaryData b)
{
	return (struct str){(const char *)b.data, b.len};
}

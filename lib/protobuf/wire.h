/* SPDX-License-Identifier: Apache-2.0 */
/* The protobuf wire format as profile.proto uses it: writers of varints and length-delimited
 * fields, readers of every wire type. Source: "Encoding" in the Protocol Buffers documentation.
 * Writers append to a buf and leave failure to its `failed`. A reader is a slice that shrinks from
 * its front. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#define WIRE_VARINT 0u
#define WIRE_I64    1u
#define WIRE_BYTES  2u
#define WIRE_I32    5u

#define WIRE_VARINT_MAX 10

/* Writes `value` to p, which has WIRE_VARINT_MAX bytes; returns how many it took. */
static inline size_t wire_encode(char *p, uint64_t value)
{
	size_t n = 0;

	for (; value >= 0x80; value >>= 7)
		p[n++] = (char)(value | 0x80);
	p[n++] = (char)value;
	return n;
}

static inline size_t wire_length(uint64_t value)
{
	return (size_t)(63 - __builtin_clzll(value | 1)) / 7 + 1;
}

static inline void wire_put(struct buf *b, uint64_t value)
{
	char *p = buf_reserve(b, WIRE_VARINT_MAX);

	if (p)
		b->n += wire_encode(p, value);
}

/* A scalar field; 0 is proto3's default and is not written. */
static inline void wire_put_field(struct buf *b, uint32_t field, uint64_t value)
{
	if (value == 0)
		return;
	wire_put(b, field << 3 | WIRE_VARINT);
	wire_put(b, value);
}

/* What stands before n bytes of a string, a message or a packed list. */
static inline void wire_put_head(struct buf *b, uint32_t field, size_t n)
{
	wire_put(b, field << 3 | WIRE_BYTES);
	wire_put(b, n);
}

/* A string, a message or a packed list that is there already. */
static inline void wire_put_bytes(struct buf *b, uint32_t field, struct str bytes)
{
	wire_put_head(b, field, bytes.n);
	buf_str_append(b, bytes);
}

/* What a string, a message or a packed list of n bytes takes, in a field whose number is below 16.
 */
static inline size_t wire_size(size_t n)
{
	return 1 + wire_length(n) + n;
}

/* Takes a varint off the front; false if there is no whole one. */
static inline bool wire_get(struct str *in, uint64_t *ret)
{
	uint64_t value = 0;

	for (size_t i = 0; i < in->n && i < WIRE_VARINT_MAX; i++) {
		unsigned char byte = (unsigned char)in->p[i];

		if (i == WIRE_VARINT_MAX - 1 && byte > 1)
			return false;
		value |= (uint64_t)(byte & 0x7f) << 7 * i;
		if (byte < 0x80) {
			*in = (struct str){in->p + i + 1, in->n - i - 1};
			*ret = value;
			return true;
		}
	}
	return false;
}

/* One field of a message: `value` of a scalar, or `bytes`. */
struct wire_field {
	uint32_t number;
	uint32_t type;
	uint64_t value;
	struct str bytes;
};

/* Takes the next field off the front; false at malformed input, which includes groups
 * (profile.proto has none). Not to be called at the end. */
static inline bool wire_next(struct str *in, struct wire_field *ret)
{
	uint64_t tag, n;

	if (!wire_get(in, &tag) || tag >> 3 == 0 || tag >> 3 > UINT32_MAX >> 3)
		return false;
	*ret = (struct wire_field){.number = (uint32_t)(tag >> 3), .type = tag & 7};
	switch (ret->type) {
	case WIRE_VARINT:
		return wire_get(in, &ret->value);
	case WIRE_BYTES:
		if (!wire_get(in, &n) || n > in->n)
			return false;
		ret->bytes = (struct str){in->p, n};
		break;
	case WIRE_I64:
		n = 8;
		break;
	case WIRE_I32:
		n = 4;
		break;
	default:
		return false;
	}
	if (n > in->n)
		return false;
	*in = (struct str){in->p + n, in->n - n};
	return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles as Go writes its allocations: two sample types of totals and one that is none. */
#pragma once

#include "base/buf.h"
#include "protobuf/wire.h"

#include <stdint.h>

/* A stack of one frame at `address`, with its totals; what lives is half of the bytes. */
struct counted {
	uint64_t address;
	int64_t objects, bytes;
};

static inline void put_pair(struct buf *out, uint32_t field, uint64_t a, uint64_t b)
{
	struct buf message = BUF_NULL;

	wire_put_field(&message, 1, a);
	wire_put_field(&message, 2, b);
	wire_put_bytes(out, field, buf_str(&message));
	buf_free(&message);
}

/* Samples first and strings last, ids counted in the order of the list. */
static inline struct buf profile_of(const struct counted *stacks, size_t n)
{
	static const char *const strings[] = {"",      "alloc_objects", "count",
					      "alloc_space", "bytes",   "inuse_space"};
	struct buf out = BUF_NULL;

	put_pair(&out, 1, 1, 2);
	put_pair(&out, 1, 3, 4);
	put_pair(&out, 1, 5, 4);
	for (size_t i = 0; i < n; i++) {
		struct buf sample = BUF_NULL, values = BUF_NULL;

		wire_put(&values, (uint64_t)stacks[i].objects);
		wire_put(&values, (uint64_t)stacks[i].bytes);
		wire_put(&values, (uint64_t)stacks[i].bytes / 2);
		wire_put_field(&sample, 1, i + 1);
		wire_put_bytes(&sample, 2, buf_str(&values));
		wire_put_bytes(&out, 2, buf_str(&sample));
		buf_free(&sample);
		buf_free(&values);
	}
	for (size_t i = 0; i < n; i++) {
		struct buf location = BUF_NULL;

		wire_put_field(&location, 1, i + 1);
		wire_put_field(&location, 3, stacks[i].address);
		wire_put_bytes(&out, 4, buf_str(&location));
		buf_free(&location);
	}
	for (size_t i = 0; i < sizeof(strings) / sizeof(*strings); i++)
		wire_put_bytes(&out, 6, str_of(strings[i]));
	return out;
}

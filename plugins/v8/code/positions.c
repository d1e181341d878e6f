/* SPDX-License-Identifier: Apache-2.0 */
/* Tables are decoded where they are asked: a look-up passes some hundred bytes. */
#include "v8/code/positions.h"

#include <stdlib.h>

struct position position_of(uint64_t word)
{
	struct position p = {-1, (int32_t)(word >> 31 & 0xffff) - 1};

	if ((word & 1) == 0) /* else a place in a file that is not a script's */
		p.at = (int32_t)(word >> 1 & 0x3fffffff) - 1;
	return p;
}

/* 0, or the number of bytes. */
static uint32_t number_read(const uint8_t *p, uint32_t n, uint64_t *ret)
{
	uint64_t value = 0;

	for (uint32_t i = 0; i < n && i < 10; i++) {
		value |= (uint64_t)(p[i] & 0x7f) << (7 * i);
		if (!(p[i] & 0x80)) {
			*ret = value;
			return i + 1;
		}
	}
	return 0;
}

static int64_t number_signed(uint64_t value)
{
	return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

struct entry {
	int64_t code;
	uint64_t position;
};

/* A function's entry, where its stack is checked, is at -1 (kFunctionEntryBytecodeOffset in V8's
 * src/common/globals.h). In 8.1 the check was a bytecode. */
static struct entry before_first(const struct v8_binary *b)
{
	return (struct entry){b->version[0] == 8 && b->version[1] < 2 ? 0 : -1, 0};
}

/* Moves to the next entry; how many bytes it has, 0: there is none. */
static uint32_t entry_next(const uint8_t *p, uint32_t n, uint32_t shift, struct entry *e)
{
	uint64_t code, position;
	uint32_t k = number_read(p, n, &code), m = k ? number_read(p + k, n - k, &position) : 0;

	if (m == 0)
		return 0;
	/* Of one bit it is the sign: what a number with a sign is without it. */
	e->code += (int64_t)((code & 0xffffffff) >> shift);
	e->position += (uint64_t)number_signed(position);
	return k + m;
}

bool positions_find(const uint8_t *table, uint32_t n, const struct v8_binary *b, int64_t offset,
		    struct position *ret)
{
	struct entry e = before_first(b);
	bool found = false;

	for (uint32_t at = 0, k; at < n; at += k) {
		k = entry_next(table + at, n - at, b->positions_shift, &e);
		if (k == 0 || e.code > offset)
			break;
		*ret = position_of(e.position);
		found = true;
	}
	return found;
}

bool positions_last(const uint8_t *table, uint32_t n, const struct v8_binary *b, uint32_t *ret)
{
	struct entry e = before_first(b);

	for (uint32_t at = 0, k; at < n; at += k) {
		k = entry_next(table + at, n - at, b->positions_shift, &e);
		if (k == 0)
			return false;
	}
	*ret = (uint32_t)e.code;
	return n > 0 && e.code >= 0 && e.code < INT32_MAX;
}

bool positions_fit(const uint8_t *table, uint32_t n, const struct v8_binary *b, uint64_t end)
{
	struct entry e = before_first(b);

	for (uint32_t at = 0, k; at < n; at += k) {
		k = entry_next(table + at, n - at, b->positions_shift, &e);
		if (k == 0)
			return false;
	}
	return e.code < 0 || (uint64_t)e.code <= end;
}

struct baseline_step *baseline_steps(const struct v8_binary *b, const uint8_t *sizes,
				     uint32_t n_sizes, const uint8_t *bytecodes,
				     uint32_t n_bytecodes, uint32_t *ret_n)
{
	struct baseline_step *steps;
	uint32_t n = 0, scale = 0, start = 0, offset = 0, at = 0;
	uint64_t size, end = 0;

	if (b->n_sizes == 0)
		return NULL;
	steps = calloc((size_t)n_bytecodes + 1, sizeof(*steps));
	if (!steps)
		return NULL;
	/* What stands before the first bytecode's code has an entry of its own. */
	for (bool prologue = true; at < n_sizes && n <= n_bytecodes; prologue = false) {
		uint32_t k = number_read(sizes + at, n_sizes - at, &size), length;

		if (k == 0)
			break;
		at += k;
		end += size;
		steps[n++] = (struct baseline_step){(uint32_t)end, start};
		if (prologue)
			continue;
		if (offset >= n_bytecodes || bytecodes[offset] >= b->n_sizes)
			break;
		/* The first four are prefixes: Wide, ExtraWide, and two for breakpoints. */
		if (bytecodes[offset] < 4) {
			scale = 1 + (bytecodes[offset] & 1);
			offset++;
			if (offset >= n_bytecodes || bytecodes[offset] >= b->n_sizes)
				break;
		}
		length = b->sizes[scale * b->n_sizes + bytecodes[offset]];
		if (length == 0)
			break;
		offset += length;
		start = offset;
		scale = 0;
	}
	*ret_n = n;
	return steps;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See lines.h. Formats: Objects/lnotab_notes.txt of CPython to 3.10, InternalDocs/code_objects.md
 * from 3.11 on. */
#include "python/lines.h"

#include "python/wire.h"

#define LINES_MAX 10000000

/* The beginning of a module has line 0. */
static uint32_t credible(const struct line_table *t, int64_t line)
{
	if (line == 0)
		return t->first_line;
	return line > 0 && line <= LINES_MAX ? (uint32_t)line : 0;
}

/* Pairs of bytes: so many bytes of code later begins a line so many lines below. The last line goes
 * on to the end of the code. */
static uint32_t line_by_pairs(const struct line_table *t, uint64_t position)
{
	int64_t line = t->first_line;
	uint64_t at = 0;

	for (size_t i = 0; i + 2 <= t->n; i += 2) {
		at += t->bytes[i];
		if (at > position)
			return credible(t, line);
		line += (int8_t)t->bytes[i + 1];
	}
	return t->cut ? 0 : credible(t, line);
}

/* Pairs of bytes: the next range has so many bytes of code and begins so many lines below; a step
 * of -128 means that it has no line. */
static uint32_t line_by_ranges(const struct line_table *t, uint64_t position)
{
	int64_t line = t->first_line, last = line;
	uint64_t at = 0;

	for (size_t i = 0; i + 2 <= t->n; i += 2) {
		int8_t step = (int8_t)t->bytes[i + 1];

		at += t->bytes[i];
		if (step != -128)
			last = line += step;
		if (at > position)
			return credible(t, last);
	}
	return 0;
}

struct reader {
	const unsigned char *at, *limit;
};

/* Six bits a byte, least significant first, with bit 6 where more follow. CPython's numbers have 32
 * bits; longer ones could add up to more than 64. */
static uint64_t take_varint(struct reader *r)
{
	uint64_t ret = 0;

	for (unsigned shift = 0; r->at < r->limit; shift += 6) {
		unsigned byte = *r->at++;

		if (shift < 36)
			ret |= (uint64_t)(byte & 63) << shift;
		if (!(byte & 64))
			break;
	}
	return ret;
}

static int64_t take_signed(struct reader *r)
{
	uint64_t value = take_varint(r);

	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

static void skip(struct reader *r, size_t n)
{
	r->at += (size_t)(r->limit - r->at) < n ? (size_t)(r->limit - r->at) : n;
}

/* One entry: how many units of code, and the step of lines; *has_line: it has one. */
static int64_t take_location(struct reader *r, uint64_t *units, int *has_line)
{
	unsigned head = *r->at++, code = head >> 3 & 15;
	int64_t step = 0;

	*units = (head & 7) + 1;
	*has_line = code != 15;
	if (code == 14) {
		step = take_signed(r);
		take_varint(r);
		take_varint(r);
		take_varint(r);
	} else if (code == 13) {
		step = take_signed(r);
	} else if (code >= 10 && code <= 12) {
		step = code - 10;
		skip(r, 2);
	} else if (code < 10) {
		skip(r, 1);
	}
	return step;
}

static uint32_t line_by_locations(const struct line_table *t, uint64_t position)
{
	struct reader r = {t->bytes, t->bytes + t->n};
	int64_t line = t->first_line, last = line;
	uint64_t at = 0, units;
	int has_line;

	while (r.at < r.limit) {
		if (!(*r.at & 0x80))
			return 0;
		line += take_location(&r, &units, &has_line);
		if (has_line)
			last = line;
		at += 2 * units;
		if (at > position)
			return credible(t, last);
	}
	return 0;
}

uint32_t line_at(const struct line_table *t, uint64_t position)
{
	if (position >= PYTHON_NO_LINE || (int32_t)position < 0)
		return t->first_line;
	switch (t->kind) {
	case PYTHON_LINES_LNOTAB:
		return line_by_pairs(t, position);
	case PYTHON_LINES_RANGES:
		return line_by_ranges(t, position * 2);
	default:
		return line_by_locations(t, position);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A look-up searches the full ends, then adds up to LINES_STEP distances. */
#include "v8/lines.h"

#include <stdlib.h>

void lines_fini(struct lines *l)
{
	free(l->distances);
	free(l->marks);
	*l = (struct lines){0};
}

static bool lines_reserve(struct lines *l)
{
	if (l->n_bytes + 5 > l->max_bytes) {
		uint32_t max = l->max_bytes ? 2 * l->max_bytes : 256;
		uint8_t *grown = realloc(l->distances, max);

		if (!grown)
			return false;
		l->distances = grown;
		l->max_bytes = max;
	}
	if (l->n / LINES_STEP == l->max_marks) {
		uint32_t max = l->max_marks ? 2 * l->max_marks : 8;
		struct lines_mark *grown = realloc(l->marks, max * sizeof(*grown));

		if (!grown)
			return false;
		l->marks = grown;
		l->max_marks = max;
	}
	return true;
}

bool lines_add(struct lines *l, uint32_t end)
{
	uint32_t distance = end - l->last;

	if (lines_bytes(l) + 5 + sizeof(struct lines_mark) > LINES_BYTES || !lines_reserve(l))
		return false;
	if (l->n % LINES_STEP == 0)
		l->marks[l->n / LINES_STEP] = (struct lines_mark){l->last, l->n_bytes};
	for (; distance >= 128; distance >>= 7)
		l->distances[l->n_bytes++] = (uint8_t)(distance | 128);
	l->distances[l->n_bytes++] = (uint8_t)distance;
	l->n++;
	l->last = end;
	return true;
}

static uint32_t marks_used(const struct lines *l)
{
	return (l->n + LINES_STEP - 1) / LINES_STEP;
}

void lines_trim(struct lines *l)
{
	void *kept = l->n > 0 ? realloc(l->distances, l->n_bytes) : NULL;

	if (kept) {
		l->distances = kept;
		l->max_bytes = l->n_bytes;
	}
	kept = l->n > 0 ? realloc(l->marks, marks_used(l) * sizeof(*l->marks)) : NULL;
	if (kept) {
		l->marks = kept;
		l->max_marks = marks_used(l);
	}
}

size_t lines_bytes(const struct lines *l)
{
	return l->n_bytes + marks_used(l) * sizeof(*l->marks);
}

uint32_t lines_find(const struct lines *l, uint32_t position)
{
	uint32_t low = 0, high = marks_used(l), end, at;

	if (l->n == 0 || position > l->last)
		return 0;
	/* The last mark whose end is before the position. */
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (l->marks[middle].position < position)
			low = middle;
		else
			high = middle;
	}
	end = l->marks[low].position;
	at = l->marks[low].at;
	for (uint32_t line = low * LINES_STEP; line < l->n; line++) {
		for (uint32_t shift = 0; at < l->n_bytes; shift += 7) {
			uint8_t byte = l->distances[at++];

			end += (uint32_t)(byte & 127) << shift;
			if (byte < 128)
				break;
		}
		if (position <= end)
			return line + 1;
	}
	return 0;
}

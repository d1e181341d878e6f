/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over the bytes; what is read behind their end is zero, which ends the table. */
#include "jvm/line-table.h"

struct cursor {
	const uint8_t *bytes;
	uint64_t n, at;
};

static uint32_t byte_next(struct cursor *c)
{
	return c->at < c->n ? c->bytes[c->at++] : 0;
}

static int32_t signed_next(struct cursor *c, uint32_t excluded)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < 5; i++) {
		uint32_t byte = byte_next(c);

		sum += (byte - excluded) << (6 * i);
		if (byte < 192)
			break;
	}
	return (int32_t)(sum >> 1 ^ (0 - (sum & 1)));
}

uint32_t line_find(const uint8_t *bytes, uint64_t n, int excluded, uint32_t bci,
		   uint32_t *ret_first)
{
	struct cursor c = {bytes, n, 0};
	uint32_t at = 0, line = 0, best = 0, best_at = 0, first = 0, ended = 0;

	while (c.at < c.n) {
		uint32_t byte = byte_next(&c);

		if (byte == 0) {
			ended = 1;
			break;
		}
		if (byte == 255) {
			at += (uint32_t)signed_next(&c, excluded ? 1 : 0);
			line += (uint32_t)signed_next(&c, excluded ? 1 : 0);
		} else {
			at += byte >> 3;
			line += byte & 7;
		}
		if (line > 65535) /* the class file has sixteen bits for it */
			return 0;
		if (line != 0 && (first == 0 || line < first))
			first = line;
		if (at <= bci && (best == 0 || at >= best_at)) {
			best = line;
			best_at = at;
		}
	}
	*ret_first = first;
	/* Of a table that was cut, what is behind the cut is not known. */
	return ended || at > bci ? best : 0;
}

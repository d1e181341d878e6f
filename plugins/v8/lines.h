/* SPDX-License-Identifier: Apache-2.0 */
/* Where the lines of a script end, in a byte or two a line: each end is kept as its distance from
 * the one before, in groups of seven bits, and each LINES_STEP lines once in full. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINES_BYTES (1u << 20) /* of a script; one that needs more has no lines */
#define LINES_STEP  64u

struct lines_mark {
	uint32_t position, at; /* the end of the line before, and where the next distance stands */
};

struct lines {
	uint8_t *distances;
	struct lines_mark *marks;
	uint32_t n_bytes, max_bytes;
	uint32_t n, max_marks; /* n: lines */
	uint32_t last;         /* end of the last line */
};

void lines_fini(struct lines *l);

/* Ends come in ascending order. False: no room, or no memory. */
bool lines_add(struct lines *l, uint32_t end);

/* Gives back what was reserved and is not used. */
void lines_trim(struct lines *l);

/* The line of a position, from 1 on; 0: it is behind the last. */
uint32_t lines_find(const struct lines *l, uint32_t position);

size_t lines_bytes(const struct lines *l);

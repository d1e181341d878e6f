/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a section onwards, through a piece of it in memory. What fails is
 * remembered: numbers are 0 from then on, so that a parser checks once, where
 * it would otherwise go on for ever. A cursor is used by one thread at a time. */
#pragma once

#include "base/buf.h"

#include <stdint.h>

/* Where a section's bytes are. fd -1: there is no such section. */
struct dwarf_section {
	int fd;
	bool owned; /* of inflated bytes */
	uint64_t base, size;
};

struct cursor {
	struct dwarf_section s;
	size_t piece;
	unsigned char *bytes;
	const unsigned char *p, *end; /* what is left of the piece */
	uint64_t after;               /* offset in the section behind the piece */
	int error;                    /* -ENOEXEC: ran out of the section; or of pread, malloc */
};

/* `piece` bytes are read at once, at least 64. Takes memory when it is first
 * read from. */
void cursor_init(struct cursor *c, const struct dwarf_section *s, size_t piece);
void cursor_fini(struct cursor *c);

/* Fails as if reading had: the rest reads as zeros. The first error stays. */
void cursor_fail(struct cursor *c, int error);

/* Where the next byte is. */
static inline uint64_t cursor_at(const struct cursor *c)
{
	return c->after - (uint64_t)(c->end - c->p);
}

/* Goes there, and forgets an earlier failure. O(1), within the piece without reading. */
void cursor_seek(struct cursor *c, uint64_t at);
void cursor_skip(struct cursor *c, uint64_t n);

/* Little-endian, n ≤ 8 bytes. */
uint64_t cursor_number(struct cursor *c, unsigned int n);
uint64_t cursor_uleb(struct cursor *c);
int64_t cursor_sleb(struct cursor *c);
/* The length that a unit or table begins with (DWARF 5, section 7.4): where it ends, and how many
 * bytes an offset in it takes. A failure where that lies outside the section. */
uint64_t cursor_unit_end(struct cursor *c, uint8_t *ret_offset_size);
static inline uint8_t cursor_u8(struct cursor *c)
{
	return c->p < c->end ? *c->p++ : (uint8_t)cursor_number(c, 1);
}

/* Goes behind the next NUL. */
void cursor_skip_text(struct cursor *c);
/* Appends the text up to the NUL, at most `max` bytes of it. c->error or 0. */
int cursor_text(struct cursor *c, size_t max, struct buf *out);

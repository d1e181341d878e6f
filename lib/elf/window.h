/* SPDX-License-Identifier: Apache-2.0 */
/* A range of an untrusted file, read in pieces: the bytes asked for and what follows them. Reading
 * onwards costs a pread a piece; reading back and forth within a piece costs none. Memory is one
 * piece, taken at the first read. Used by one thread at a time. */
#pragma once

#include "base/buf.h"

#include <stdint.h>

#define WINDOW_PIECE ((size_t)16384)

struct window {
	int fd;        /* borrowed */
	uint64_t base; /* where the range begins in the file */
	uint64_t size;
	uint64_t start; /* the piece that is there: [start, +n) of the range */
	size_t n;
	unsigned char *bytes;
};

/* The caller has checked that the range does not wrap. */
static inline struct window window_of(int fd, uint64_t base, uint64_t size)
{
	return (struct window){.fd = fd, .base = base, .size = size};
}

void window_free(struct window *w);

/* window_some for what is not there. */
int window_move(struct window *w, uint64_t at, size_t want, const unsigned char **ret);

/* Up to `want` bytes (at most WINDOW_PIECE) at `at`, fewer only where the range
 * ends; *ret lives until the next call. How many, at least 1; -ENOEXEC: `at` is outside;
 * -ENODATA: the file is shorter than it was; -ENOMEM or pread's errno. */
static inline int window_some(struct window *w, uint64_t at, size_t want, const unsigned char **ret)
{
	uint64_t in = at - w->start; /* far too large, where `at` is before the piece */

	if (in > w->n || w->n - (size_t)in < want)
		return window_move(w, at, want, ret);
	*ret = w->bytes + in;
	return (int)want;
}

/* Exactly n bytes, else -ENOEXEC; 0 on success. */
int window_read(struct window *w, uint64_t at, size_t n, const unsigned char **ret);

/* Numbers, little-endian. 0 or as above. */
int window_u32(struct window *w, uint64_t at, uint32_t *ret);
int window_u64(struct window *w, uint64_t at, uint64_t *ret);

/* Appends the text up to its NUL, at most `max` bytes of it (a longer one is cut). 0; -ENOEXEC: it
 * runs out of the range; else as above. */
int window_text(struct window *w, uint64_t at, size_t max, struct buf *out);

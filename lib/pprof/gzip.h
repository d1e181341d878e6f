/* SPDX-License-Identifier: Apache-2.0 */
/* gzip in both directions, over buffers, with bounds. zlib allocates through malloc, as all else
 * here. */
#pragma once

#include "base/buf.h"

/* A stream into `out`; level 0 copies. Zero-initialised is closed. */
struct gzip_writer {
	struct buf *out;
	void *stream; /* z_stream, NULL: copy */
	size_t raw;   /* bytes put in so far */
	int error;    /* the first failure; later writes do nothing */
};

/* 0 or -ENOMEM. gzip_close must follow. */
int gzip_open(struct gzip_writer *w, struct buf *out, int level);
void gzip_write(struct gzip_writer *w, struct str data);
/* Ends the stream: 0, -ENOMEM or -E2BIG (out's limit). */
int gzip_close(struct gzip_writer *w);

/* Whether it begins like gzip. */
bool gzip_is(struct str data);

/* Appends what `data` (one or more gzip members) holds: 0, -EBADMSG if it is damaged or cut off,
 * -E2BIG beyond `max` bytes, -ENOMEM. */
int gzip_inflate(struct str data, struct buf *out, size_t max);

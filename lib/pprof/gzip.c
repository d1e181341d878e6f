/* SPDX-License-Identifier: Apache-2.0 */
/* gzip over buffers. Contracts in gzip.h. */
#include "pprof/gzip.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#define GZIP_WINDOW (15 + 16) /* 32 KiB window, gzip framing */
#define CHUNK       65536u

/* zlib's own allocator is linked elsewhere; ours can be made to fail. */
static voidpf take(voidpf opaque, uInt items, uInt size)
{
	return calloc(items, size);
}

static void give(voidpf opaque, voidpf p)
{
	free(p);
}

int gzip_open(struct gzip_writer *w, struct buf *out, int level)
{
	z_stream *z;

	*w = (struct gzip_writer){.out = out};
	if (level == 0)
		return 0;
	z = calloc(1, sizeof(*z));
	if (!z)
		return w->error = -ENOMEM;
	z->zalloc = take;
	z->zfree = give;
	if (deflateInit2(z, level, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
		free(z);
		return w->error = -ENOMEM;
	}
	w->stream = z;
	return 0;
}

/* Runs deflate until it wants more input (or, flushing, is done). */
static void pump(struct gzip_writer *w, int flush)
{
	size_t limit = w->out->limit ? w->out->limit : (size_t)1 << 30;
	z_stream *z = w->stream;
	int r;

	do {
		size_t left = limit - w->out->n, want = left < CHUNK ? left : CHUNK;
		char *room = want ? buf_reserve(w->out, want) : NULL;

		if (!room) {
			w->error = want ? -ENOMEM : -E2BIG;
			return;
		}
		z->next_out = (Bytef *)room;
		z->avail_out = (uInt)want;
		r = deflate(z, flush);
		w->out->n += want - z->avail_out;
	} while (flush == Z_FINISH ? r != Z_STREAM_END : z->avail_out == 0);
}

void gzip_write(struct gzip_writer *w, struct str data)
{
	z_stream *z = w->stream;

	if (w->error || data.n == 0)
		return;
	w->raw += data.n;
	if (!z) {
		w->error = buf_str_append(w->out, data);
		return;
	}
	while (data.n && !w->error) {
		struct str part = str_first(data, 1u << 30);

		z->next_in = (z_const Bytef *)(uintptr_t)part.p;
		z->avail_in = (uInt)part.n;
		pump(w, Z_NO_FLUSH);
		data = str_skip(data, part.n);
	}
}

int gzip_close(struct gzip_writer *w)
{
	z_stream *z = w->stream;

	if (!z)
		return w->error;
	if (!w->error) {
		z->avail_in = 0;
		pump(w, Z_FINISH);
	}
	deflateEnd(z);
	free(z);
	w->stream = NULL;
	return w->error;
}

bool gzip_is(struct str data)
{
	return data.n >= 2 && data.p[0] == '\x1f' && data.p[1] == '\x8b';
}

/* One call of inflate into fresh room: 0 to go on, 1 at a member's end, or a negative errno. */
static int inflate_some(z_stream *z, struct buf *out, size_t left)
{
	size_t want = left < CHUNK ? left : CHUNK;
	char probe, *room = want ? buf_reserve(out, want) : &probe;
	size_t got;
	int r;

	if (!room)
		return -ENOMEM;
	z->next_out = (Bytef *)room;
	z->avail_out = want ? (uInt)want : 1;
	got = z->avail_out;
	/* Where all fits at once, this keeps zlib from making a copy of its end. */
	r = inflate(z, Z_FINISH);
	got -= z->avail_out;
	if (want)
		out->n += got;
	else if (got)
		return -E2BIG;
	if (r == Z_MEM_ERROR)
		return -ENOMEM;
	if (r == Z_BUF_ERROR && z->avail_out == 0)
		return 0;
	return r == Z_STREAM_END ? 1 : -EBADMSG;
}

int gzip_inflate(struct str data, struct buf *out, size_t max)
{
	z_stream z = {.zalloc = take, .zfree = give};
	size_t start = out->n;
	int r;

	if (data.n > UINT32_MAX)
		return -E2BIG;
	z.next_in = (z_const Bytef *)(uintptr_t)data.p;
	z.avail_in = (uInt)data.n;
	if (inflateInit2(&z, GZIP_WINDOW) != Z_OK)
		return -ENOMEM;
	do {
		r = inflate_some(&z, out, max - (out->n - start));
		/* Another member may follow; anything else behind is damage. */
		if (r == 1 && z.avail_in > 0 && inflateReset(&z) == Z_OK)
			r = 0;
	} while (r == 0);
	inflateEnd(&z);
	return r < 0 ? r : 0;
}

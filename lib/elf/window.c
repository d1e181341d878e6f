/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a range in pieces. Contract in window.h. */
#include "elf/window.h"

#include "base/check.h"
#include "base/file.h"

#include <errno.h>
#include <stdlib.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are copied as they lie");

void window_free(struct window *w)
{
	free(w->bytes);
	w->bytes = NULL;
	w->n = 0;
}

static bool there(const struct window *w, uint64_t at, size_t want)
{
	return at >= w->start && at - w->start <= w->n && w->n - (size_t)(at - w->start) >= want;
}

/* Reads the piece that begins a little before `at`: who reads backwards (a binary search's end, a
 * table beside its header) finds it there too. */
static int fill(struct window *w, uint64_t at, size_t want)
{
	uint64_t start = at & ~(uint64_t)511;
	uint64_t left;
	int r;

	if (at - start + want > WINDOW_PIECE)
		start = at;
	check(at < w->size && start <= at);
	left = w->size - start;
	if (!w->bytes)
		w->bytes = malloc(WINDOW_PIECE);
	if (!w->bytes)
		return -ENOMEM;
	w->start = start;
	w->n = 0;
	r = file_pread(w->fd, w->bytes, left < WINDOW_PIECE ? (size_t)left : WINDOW_PIECE,
		       w->base + start);
	if (r < 0)
		return r;
	w->n = left < WINDOW_PIECE ? (size_t)left : WINDOW_PIECE;
	return 0;
}

int window_move(struct window *w, uint64_t at, size_t want, const unsigned char **ret)
{
	int r = 0;

	check(want && want <= WINDOW_PIECE);
	if (at >= w->size)
		return -ENOEXEC;
	if (want > w->size - at)
		want = (size_t)(w->size - at);
	if (!w->n || !there(w, at, want))
		r = fill(w, at, want);
	if (r < 0)
		return r;
	check(there(w, at, want));
	*ret = w->bytes + (at - w->start);
	return (int)want;
}

int window_read(struct window *w, uint64_t at, size_t n, const unsigned char **ret)
{
	int got = window_some(w, at, n, ret);

	return got < 0 ? got : (size_t)got == n ? 0 : -ENOEXEC;
}

int window_u32(struct window *w, uint64_t at, uint32_t *ret)
{
	const unsigned char *p;
	int r = window_read(w, at, sizeof(*ret), &p);

	if (r == 0)
		memcpy(ret, p, sizeof(*ret));
	return r;
}

int window_u64(struct window *w, uint64_t at, uint64_t *ret)
{
	const unsigned char *p;
	int r = window_read(w, at, sizeof(*ret), &p);

	if (r == 0)
		memcpy(ret, p, sizeof(*ret));
	return r;
}

int window_text(struct window *w, uint64_t at, size_t max, struct buf *out)
{
	while (max) {
		const unsigned char *p;
		int got = window_some(w, at, max < 256 ? max : 256, &p);
		size_t n;

		if (got < 0)
			return got;
		n = strnlen((const char *)p, (size_t)got);
		if (buf_append(out, p, n) < 0)
			return -ENOMEM;
		if (n < (size_t)got)
			return 0;
		at += n;
		max -= n;
	}
	return 0;
}

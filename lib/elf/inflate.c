/* SPDX-License-Identifier: Apache-2.0 */
/* Inflating into a file. Contract in inflate.h. */
#include "elf/inflate.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#define PIECE ((size_t)65536)

struct stream {
	const struct elf_file *f;
	uint64_t at, end;  /* of what is compressed */
	uint64_t n, claim; /* of what it becomes */
	unsigned char *in, *out;
	z_stream z;
	int to;
};

static int feed(struct stream *s)
{
	size_t n = s->end - s->at < PIECE ? (size_t)(s->end - s->at) : PIECE;
	int r;

	if (s->z.avail_in)
		return 0;
	if (n == 0)
		return -ENOEXEC;
	r = file_pread(s->f->fd, s->in, n, s->at);
	s->z.next_in = s->in;
	s->z.avail_in = (uInt)n;
	s->at += n;
	return r;
}

static int inflate_all(struct stream *s)
{
	for (;;) {
		int r = feed(s), z;
		size_t n;

		if (r < 0)
			return r;
		s->z.next_out = s->out;
		s->z.avail_out = (uInt)PIECE;
		z = inflate(&s->z, Z_NO_FLUSH);
		if (z != Z_OK && z != Z_STREAM_END)
			return z == Z_MEM_ERROR ? -ENOMEM : -ENOEXEC;
		n = PIECE - s->z.avail_out;
		if (n > s->claim - s->n)
			return -ENOEXEC;
		s->n += n;
		r = file_write_fd(s->to, s->out, n);
		if (r < 0)
			return r;
		if (z == Z_STREAM_END)
			return s->n == s->claim ? 0 : -ENOEXEC;
	}
}

int elf_inflate_section(const struct elf_file *f, const Elf64_Shdr *section, uint64_t max, int to,
			uint64_t *ret)
{
	_cleanup_(freep) unsigned char *memory = NULL;
	struct stream s = {.f = f, .to = to};
	Elf64_Chdr head;
	int r;

	if (section->sh_size < sizeof(head) || section->sh_offset > f->size ||
	    section->sh_size > f->size - section->sh_offset)
		return -ENOEXEC;
	r = file_pread(f->fd, &head, sizeof(head), section->sh_offset);
	if (r < 0)
		return r;
	if (head.ch_type != ELFCOMPRESS_ZLIB)
		return -ENOTSUP;
	if (head.ch_size > max)
		return -E2BIG;
	s.at = section->sh_offset + sizeof(head);
	s.end = section->sh_offset + section->sh_size;
	s.claim = head.ch_size;
	memory = malloc(2 * PIECE);
	if (!memory || inflateInit(&s.z) != Z_OK)
		return -ENOMEM;
	s.in = memory;
	s.out = memory + PIECE;
	r = inflate_all(&s);
	inflateEnd(&s.z);
	if (r == 0)
		*ret = s.n;
	return r;
}

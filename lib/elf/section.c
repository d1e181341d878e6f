/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a section. A compressed one says how large it becomes; that is
 * a claim: memory is taken up to the caller's limit only, and inflating stops
 * where the claim ends.
 */
#include "elf/file.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#define CHUNK ((size_t)32768)

/* Feeds [offset, +n) of the file to `z`, whose output room is set. */
static int inflate_range(const struct elf_file *f, z_stream *z, uint64_t offset, uint64_t n)
{
	_cleanup_(freep) unsigned char *in = malloc(CHUNK);

	if (!in)
		return -ENOMEM;
	while (n) {
		size_t part = n < CHUNK ? (size_t)n : CHUNK;
		int r = file_pread(f->fd, in, part, offset);

		if (r < 0)
			return r;
		z->next_in = in;
		z->avail_in = (uInt)part;
		r = inflate(z, Z_NO_FLUSH);
		if (r == Z_STREAM_END)
			return 0;
		if (r == Z_MEM_ERROR)
			return -ENOMEM;
		/* Room is as large as claimed: input left over is a lie. */
		if (r != Z_OK || z->avail_in)
			return -ENOEXEC;
		offset += part;
		n -= part;
	}
	return -ENOEXEC;
}

static int read_compressed(const struct elf_file *f, const Elf64_Shdr *s, size_t max,
			   struct buf *out)
{
	z_stream z = {0};
	Elf64_Chdr head;
	char *room;
	int r;

	if (s->sh_size < sizeof(head))
		return -ENOEXEC;
	r = file_pread(f->fd, &head, sizeof(head), s->sh_offset);
	if (r < 0)
		return r;
	if (head.ch_type != ELFCOMPRESS_ZLIB)
		return -ENOTSUP;
	if (head.ch_size > max || head.ch_size > UINT32_MAX)
		return -E2BIG;
	room = buf_reserve(out, (size_t)head.ch_size);
	if (!room || inflateInit(&z) != Z_OK)
		return -ENOMEM;
	z.next_out = (unsigned char *)room;
	z.avail_out = (uInt)head.ch_size;
	r = inflate_range(f, &z, s->sh_offset + sizeof(head), s->sh_size - sizeof(head));
	inflateEnd(&z);
	if (r == 0 && z.avail_out)
		r = -ENOEXEC;
	if (r == 0)
		out->n += (size_t)head.ch_size;
	return r;
}

int elf_file_read_section(const struct elf_file *f, const Elf64_Shdr *s, size_t max,
			  struct buf *out)
{
	char *room;
	int r;

	if (s->sh_type == SHT_NOBITS)
		return -ENODATA;
	if (s->sh_offset > f->size || s->sh_size > f->size - s->sh_offset)
		return -ENOEXEC;
	if (s->sh_flags & SHF_COMPRESSED)
		return read_compressed(f, s, max, out);
	if (s->sh_size > max)
		return -E2BIG;
	room = buf_reserve(out, (size_t)s->sh_size);
	if (!room)
		return -ENOMEM;
	r = file_pread(f->fd, room, (size_t)s->sh_size, s->sh_offset);
	if (r == 0)
		out->n += (size_t)s->sh_size;
	return r;
}

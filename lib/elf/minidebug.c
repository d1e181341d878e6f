/* SPDX-License-Identifier: Apache-2.0 */
/* Symbols compressed with xz. Contract in minidebug.h. */
#include "elf/minidebug.h"

#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <lzma.h>
#include <stdlib.h>
#include <sys/mman.h>

#define PIECE ((size_t)65536)

struct stream {
	const struct elf_file *f;
	uint64_t at, end; /* of what is compressed */
	uint64_t n;
	unsigned char *in, *out;
	lzma_stream z;
	int to;
};

static int feed(struct stream *s)
{
	size_t n = s->end - s->at < PIECE ? (size_t)(s->end - s->at) : PIECE;
	int r;

	if (s->z.avail_in || n == 0)
		return 0;
	r = file_pread(s->f->fd, s->in, n, s->at);
	s->z.next_in = s->in;
	s->z.avail_in = n;
	s->at += n;
	return r;
}

static int decode_all(struct stream *s)
{
	for (;;) {
		int r = feed(s);
		lzma_ret z;
		size_t n;

		if (r < 0)
			return r;
		s->z.next_out = s->out;
		s->z.avail_out = PIECE;
		z = lzma_code(&s->z, s->at == s->end ? LZMA_FINISH : LZMA_RUN);
		n = PIECE - s->z.avail_out;
		if (z == LZMA_MEM_ERROR)
			return -ENOMEM;
		if (z == LZMA_MEMLIMIT_ERROR || n > MINIDEBUG_MAX - s->n)
			return -E2BIG;
		if (z != LZMA_OK && z != LZMA_STREAM_END)
			return -ENOEXEC;
		s->n += n;
		r = file_write_fd(s->to, s->out, n);
		if (r < 0 || z == LZMA_STREAM_END)
			return r;
	}
}

int elf_minidebug_open(struct elf_file *f, int *ret_fd)
{
	_cleanup_(freep) unsigned char *memory = NULL;
	_cleanup_(closep) int fd = -1;
	struct stream s = {.f = f, .z = LZMA_STREAM_INIT};
	const Elf64_Shdr *section;
	int r = elf_file_load_sections(f, NULL);

	if (r < 0)
		return r;
	section = elf_file_section(f, ".gnu_debugdata");
	if (!section || section->sh_type == SHT_NOBITS)
		return -ENOENT;
	if (section->sh_offset > f->size || section->sh_size > f->size - section->sh_offset)
		return -ENOEXEC;
	fd = memfd_create("andiron-debug", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	memory = malloc(2 * PIECE);
	if (!memory || lzma_stream_decoder(&s.z, MINIDEBUG_MEMORY, 0) != LZMA_OK)
		return -ENOMEM;
	s.at = section->sh_offset;
	s.end = section->sh_offset + section->sh_size;
	s.in = memory;
	s.out = memory + PIECE;
	s.to = fd;
	r = decode_all(&s);
	lzma_end(&s.z);
	if (r == 0)
		*ret_fd = take_fd(fd);
	return r;
}

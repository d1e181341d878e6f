/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a section. Contract in file.h. */
#include "elf/file.h"

#include "base/check.h"
#include "base/file.h"
#include "elf/inflate.h"

#include <errno.h>

static int append(void *context, const void *bytes, size_t n)
{
	return buf_append(context, bytes, n);
}

static int read_compressed(const struct elf_file *f, const Elf64_Shdr *s, size_t max,
			   struct buf *out)
{
	struct elf_compressed c;
	size_t before = out->n;
	int r = elf_compressed_read(f, s, max, &c);

	if (r == 0)
		r = elf_inflate(f, &c, append, out);
	check(out->n - before <= max);
	if (r < 0)
		out->n = before;
	return r;
}

int elf_file_read_section(const struct elf_file *f, const Elf64_Shdr *s, size_t max,
			  struct buf *out)
{
	char *room;
	int r;

	if (s->sh_type == SHT_NOBITS)
		return -ENODATA;
	if (!elf_file_holds(f, s->sh_offset, s->sh_size))
		return -ENOEXEC;
	if (elf_section_is_compressed(f, s))
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

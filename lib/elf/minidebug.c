/* SPDX-License-Identifier: Apache-2.0 */
/* Symbols compressed with xz. Contract in minidebug.h. */
#include "elf/minidebug.h"

#include "elf/inflate.h"

#include <errno.h>

int elf_minidebug_open(struct elf_file *f, int *ret_fd)
{
	struct elf_compressed c = {.codec = ELF_CODEC_XZ, .max = MINIDEBUG_MAX};
	int r = elf_file_load_sections(f, NULL);
	const Elf64_Shdr *section;
	uint64_t n;

	if (r < 0)
		return r;
	section = elf_file_section(f, ".gnu_debugdata");
	if (!section || section->sh_type == SHT_NOBITS)
		return -ENOENT;
	if (section->sh_offset > f->size || section->sh_size > f->size - section->sh_offset)
		return -ENOEXEC;
	c.offset = section->sh_offset;
	c.end = section->sh_offset + section->sh_size;
	return elf_inflate_memfd(f, &c, ret_fd, &n);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses to bytes of the file. Contract in segment.h. */
#include "elf/segment.h"

#include <errno.h>

struct elf_range elf_segment_bytes(const struct elf_file *f, size_t i)
{
	const Elf64_Phdr *p = &f->segments[i];
	uint64_t left = p->p_offset < f->size ? f->size - p->p_offset : 0;

	return (struct elf_range){p->p_offset, p->p_filesz < left ? p->p_filesz : left};
}

int elf_segment_range(const struct elf_file *f, uint64_t address, struct elf_range *ret)
{
	for (size_t i = 0; i < f->n_segments; i++) {
		struct elf_range bytes = elf_segment_bytes(f, i);
		uint64_t into = address - f->segments[i].p_vaddr;

		if (f->segments[i].p_type != PT_LOAD || address < f->segments[i].p_vaddr ||
		    into >= bytes.size)
			continue;
		*ret = (struct elf_range){bytes.offset + into, bytes.size - into};
		return 0;
	}
	return -ENOENT;
}

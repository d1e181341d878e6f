/* SPDX-License-Identifier: Apache-2.0 */
/* ELF files for tests, written by the test: sections by name with their bytes, program headers over
 * any range. The file is a memfd, so nothing touches the disk. Any allocation that fails here ends
 * the test. */
#pragma once

#include "base/buf.h"
#include "base/vec.h"

#include <elf.h>

struct elf_writer {
	uint16_t type;
	uint16_t machine;
	struct buf body;             /* what follows the ELF header */
	struct buf names;            /* .shstrtab */
	struct buf strings, symbols; /* for elf_write_symbol */
	VEC(Elf64_Shdr) sections;
	VEC(Elf64_Phdr) segments;
};

void elf_writer_init(struct elf_writer *w);
void elf_writer_fini(struct elf_writer *w);

/* Adds a section of these bytes; returns its index. `p` may be NULL for n zeros. */
uint16_t elf_write_section(struct elf_writer *w, const char *name, uint32_t type, uint64_t addr,
			   const void *p, size_t n);
/* A segment over what a section holds, or over any range of the file. */
void elf_write_segment(struct elf_writer *w, uint32_t type, uint32_t flags, uint64_t offset,
		       uint64_t vaddr, uint64_t size);

/* Collects a symbol, `info` by ELF64_ST_INFO; elf_write_symbols makes the two sections ("symtab"
 * type SHT_SYMTAB or SHT_DYNSYM) and starts afresh. */
void elf_write_symbol(struct elf_writer *w, const char *name, unsigned char info, uint16_t section,
		      uint64_t value, uint64_t size);
void elf_write_symbols(struct elf_writer *w, uint32_t type);

/* A note as it lies in a section; padded to 4. */
void elf_write_note(struct buf *out, const char *owner, size_t n_owner, uint32_t type,
		    const void *p, size_t n);

/* The bytes of the whole file, in `out`. */
void elf_write_file(struct elf_writer *w, struct buf *out);

/* A memfd of these bytes, and of the file; to close. */
int elf_memfd(const void *p, size_t n);
int elf_write_memfd(struct elf_writer *w);

/* SPDX-License-Identifier: Apache-2.0 */
/* An untrusted ELF file, read through a descriptor with pread and bounds. Nothing is mapped: every
 * offset and size is checked against the file's size and a limit before memory is taken for it.
 *
 * Only 64-bit little-endian files are read (x86-64, arm64, riscv64); others are refused by name.
 * Source of the format: gABI chapters 4 and 5, <elf.h>.
 *
 * A function that reads may find the file shorter than it was: -ENODATA. */
#pragma once

#include "base/buf.h"
#include "base/error.h"
#include "base/str.h"

#include <elf.h>
#include <stdint.h>

#define ELF_MAX_SEGMENTS 1024u
#define ELF_MAX_SECTIONS 16384u

struct elf_file {
	int fd;           /* borrowed */
	uint16_t type;    /* ET_EXEC, ET_DYN, … */
	uint16_t machine; /* EM_X86_64, … */
	uint64_t entry;   /* of the program; 0: none */
	uint64_t size;
	Elf64_Phdr *segments;
	size_t n_segments;
	/* Filled in by elf_file_load_sections. */
	Elf64_Shdr *sections;
	size_t n_sections;
	struct buf names; /* .shstrtab, NUL-terminated */
	uint64_t shoff;
	uint32_t shnum, shstrndx; /* as in the header */
};

#define ELF_FILE_NULL ((struct elf_file){.fd = -1})

/* Reads header and program headers. -ENOEXEC: not an ELF file, or a broken one;
 * -ENOTSUP: of a kind that is not read here; -E2BIG: more segments than
 * ELF_MAX_SEGMENTS; or the errno of fstat or pread. Two preads, 56 bytes of
 * memory a segment. The descriptor stays the caller's and must outlive *f. */
int elf_file_open(struct elf_file *f, int fd, struct error *err);
void elf_file_close(struct elf_file *f);

/* Whether [offset, offset + n) lies in the file. */
static inline bool elf_file_holds(const struct elf_file *f, uint64_t offset, uint64_t n)
{
	return offset <= f->size && n <= f->size - offset;
}

/* Reads the section headers and their names; again is free. 0 with n_sections == 0 where the file
 * has none. -ENOEXEC, -E2BIG, -ENOMEM or an errno. */
int elf_file_load_sections(struct elf_file *f, struct error *err);

/* The first section of that name (elf_file_section_is), or type; NULL where there is none or the
 * sections are not loaded. O(sections). */
const Elf64_Shdr *elf_file_section(const struct elf_file *f, const char *name);
const Elf64_Shdr *elf_file_section_of_type(const struct elf_file *f, uint32_t type);

/* Whether a section has that name; ".zdebug_X", as debug sections were called that GNU tools had
 * compressed before ELF could say so, counts as ".debug_X". */
bool elf_file_section_is(const struct elf_file *f, const Elf64_Shdr *section, const char *name);

/* "" where the name lies outside the table. */
struct str elf_file_section_name(const struct elf_file *f, const Elf64_Shdr *section);

/* Appends a section's bytes, decompressed if need be (elf/inflate.h), at most
 * `max` of them. -E2BIG: it is larger (nothing is appended); -ENOEXEC: it lies outside
 * the file or its compressed data are broken; -ENOTSUP: another compression;
 * -ENODATA: it has no bytes in this file (SHT_NOBITS). */
int elf_file_read_section(const struct elf_file *f, const Elf64_Shdr *section, size_t max,
			  struct buf *out);

/* The virtual address of the byte at `offset` of the file, as code has it: loaders map whole
 * pages, so all of an executable segment's first and last page belongs to it, whatever other
 * segments name there; where no executable one holds the byte, another does, in the same
 * way.
 * -ENOENT: no segment holds it. O(segments). */
int elf_file_vaddr(const struct elf_file *f, uint64_t offset, uint64_t *ret);

/* The range of the file behind the rest of a loaded segment. */
struct elf_range {
	uint64_t offset;
	uint64_t size;
};

/* From `address` to the end of the loaded segment that has it in the file, inside the file.
 * -ENOENT: none has. O(segments). */
int elf_segment_range(const struct elf_file *f, uint64_t address, struct elf_range *ret);

/* The bytes of segment i that lie inside the file. */
struct elf_range elf_segment_bytes(const struct elf_file *f, size_t i);

/* Up to n bytes of the program at an address: how many, 0 where no loaded segment has it, or an
 * errno. */
int elf_file_read_code(const struct elf_file *f, uint64_t address, void *p, size_t n);

/* The first segment of that type; NULL: there is none. O(segments). */
const Elf64_Phdr *elf_file_segment(const struct elf_file *f, uint32_t type);

/* The first entries of the dynamic section, at most ELF_DYNAMIC_MAX: how many, or an errno. */
#define ELF_DYNAMIC_MAX 256u /* most have some 30 */
int elf_file_dynamic(const struct elf_file *f, Elf64_Dyn entries[ELF_DYNAMIC_MAX]);

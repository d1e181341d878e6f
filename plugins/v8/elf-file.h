/* SPDX-License-Identifier: Apache-2.0 */
/* An ELF file, read by its descriptor: sections, symbols by name, bytes by address. 64 bits, of
 * this machine. Untrusted: each table is bounded by the file's size and by V8_ELF_TABLE. */
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define V8_ELF_TABLE    (64u << 20)
#define V8_ELF_SEGMENTS 64u
#define V8_ELF_SECTIONS 256u

struct v8_elf {
	int fd;
	uint64_t bytes;
	Elf64_Phdr segments[V8_ELF_SEGMENTS];
	uint32_t n_segments;
	Elf64_Shdr sections[V8_ELF_SECTIONS];
	uint32_t n_sections;
	Elf64_Shdr dynsym, dynstr, hash; /* sh_size 0: there is none */
};

/* 0, or -EINVAL for what is no such file. */
int elf_open(struct v8_elf *e, int fd);

/* Bytes at one of the file's own addresses. */
bool elf_read(const struct v8_elf *e, uint64_t address, void *ret, size_t n);

/* A dynamic symbol, by the GNU hash table. */
bool elf_dynamic(const struct v8_elf *e, const char *name, Elf64_Sym *ret);

/* Calls `each` for all symbols of .symtab; false: there is none, or it is too large. */
bool elf_symbols(const struct v8_elf *e,
		 void (*each)(void *context, const char *name, const Elf64_Sym *symbol),
		 void *context);

/* What a relocation puts at an address, as one of the file's own addresses. */
bool elf_relocated(const struct v8_elf *e, uint64_t address, uint64_t *ret);

/* SPDX-License-Identifier: Apache-2.0 */
/* An ELF file of the machine's own kind, read with bounds and never mapped: symbols, bytes at an
 * address, and the call-frame information of one function. Everything in it may be forged. */
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ELF_FILE_SEGMENTS 64u
#define ELF_FILE_SECTIONS 256u

struct elf_file {
	int fd; /* the caller's */
	Elf64_Ehdr head;
	Elf64_Phdr segments[ELF_FILE_SEGMENTS];
	Elf64_Shdr sections[ELF_FILE_SECTIONS]; /* none where they were stripped */
	uint32_t n_segments, n_sections;
};

struct elf_symbol {
	uint64_t address, size;
};

/* Code of a function with one entry of call-frame information. */
struct elf_code {
	uint64_t from, to;
};

/* false: it is no such file. Three reads. */
bool elf_open(struct elf_file *i, int fd);

/* Bytes at an address of the file's own; of what the file does not hold (.bss) none. The number
 * read, which is less than `n` at the end of a segment. */
size_t elf_read(const struct elf_file *i, uint64_t address, void *ret, size_t n);

/* A dynamic symbol, by the file's hash table; a few reads whether it is there or not. */
bool elf_dynamic_symbol(const struct elf_file *i, const char *name, struct elf_symbol *ret);

/* Calls `take` for each symbol of .symtab whose name begins with `prefix`, until it returns false.
 * Reads the table as a whole, at most 48 MiB each. */
void elf_each_symbol(const struct elf_file *i, const char *prefix,
		     bool (*take)(void *context, const char *name, const struct elf_symbol *symbol),
		     void *context);

/* The section of this name; NULL if there is none. */
const Elf64_Shdr *elf_section(const struct elf_file *i, const char *name);

/* The function that has this address, by .eh_frame_hdr. */
bool elf_function(const struct elf_file *i, uint64_t address, struct elf_code *ret);

/* One stretch of a function in which the canonical frame address is the same. */
struct elf_cfa {
	uint64_t from, to;
	uint32_t reg; /* DWARF's number */
	uint32_t offset;
};

/* The stretches of the function that has this address, in order; at most `max`. 0: none known. */
size_t elf_cfas(const struct elf_file *i, uint64_t address, struct elf_cfa *ret, size_t max);

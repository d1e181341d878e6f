/* SPDX-License-Identifier: Apache-2.0 */
/* An ELF file of the machine's own kind, read with bounds and never mapped: symbols, bytes at an
 * address, and the call-frame information of one function. Everything in it may be forged. */
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IMAGE_SEGMENTS 64u
#define IMAGE_SECTIONS 256u

struct image {
	int fd; /* the caller's */
	Elf64_Ehdr head;
	Elf64_Phdr segments[IMAGE_SEGMENTS];
	Elf64_Shdr sections[IMAGE_SECTIONS]; /* none where they were stripped */
	uint32_t n_segments, n_sections;
};

struct image_symbol {
	uint64_t address, size;
};

/* Code of a function with one entry of call-frame information. */
struct image_code {
	uint64_t from, to;
};

/* false: it is no such file. Three reads. */
bool image_open(struct image *i, int fd);

/* Bytes at an address of the file's own; of what the file does not hold (.bss) none. The number
 * read, which is less than `n` at the end of a segment. */
size_t image_read(const struct image *i, uint64_t address, void *ret, size_t n);

/* A dynamic symbol, by the file's hash table; a few reads whether it is there or not. */
bool image_dynamic_symbol(const struct image *i, const char *name, struct image_symbol *ret);

/* Calls `take` for each symbol of .symtab whose name begins with `prefix`, until it returns false.
 * Reads the table as a whole, at most 256 MiB. */
void image_each_symbol(const struct image *i, const char *prefix,
		       bool (*take)(void *context, const char *name,
				    const struct image_symbol *symbol),
		       void *context);

/* The section of this name; NULL if there is none. */
const Elf64_Shdr *image_section(const struct image *i, const char *name);

/* The function that has this address, by .eh_frame_hdr. */
bool image_function(const struct image *i, uint64_t address, struct image_code *ret);

/* One stretch of a function in which the canonical frame address is the same. */
struct image_cfa {
	uint64_t from, to;
	uint32_t reg; /* DWARF's number */
	uint32_t offset;
};

/* The stretches of the function that has this address, in order; at most `max`. 0: none known. */
size_t image_cfas(const struct image *i, uint64_t address, struct image_cfa *ret, size_t max);

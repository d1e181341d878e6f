/* SPDX-License-Identifier: Apache-2.0 */
/* An ELF file of this machine's own kind, read by its descriptor: symbols by name, bytes at an
 * address, sections. The file is another's: it may be forged, and it may shrink while it is read.
 * So it is read with bounds and never mapped, and what does not fit is not there.
 *
 * [any], one thread at a time for one file. Errors are "not there": a file that cannot be read and
 * one that lacks the thing are the same to a runtime. */
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ELF_FILE_SEGMENTS 64u
#define ELF_FILE_SECTIONS 256u
#define ELF_FILE_TABLE    (64u << 20) /* bytes of a table that is read as a whole */
#define ELF_FILE_NAME     128u        /* bytes of a name that is looked up, with its NUL */

/* What the dynamic section says. */
struct elf_dynamic {
	uint64_t symbols, strings, strings_bytes, gnu_hash, hash, rela, rela_bytes, soname;
};

/* 20 KB: on the heap, or in a long-lived structure. */
struct elf_file {
	int fd; /* the caller's */
	Elf64_Ehdr head;
	struct elf_dynamic dynamic;
	uint32_t n_segments, n_sections; /* no sections where they were stripped */
	Elf64_Phdr segments[ELF_FILE_SEGMENTS];
	Elf64_Shdr sections[ELF_FILE_SECTIONS];
};

struct elf_symbol {
	uint64_t address, size;
};

/* false: it is no such file. Some five reads. */
bool elf_open(struct elf_file *f, int fd);

/* Bytes at an address of the file's own; of what the file does not hold (.bss) none. The number
 * read, which is less than `n` at the end of a segment. One read. */
size_t elf_read(const struct elf_file *f, uint64_t address, void *ret, size_t n);

/* All of them, or false. */
bool elf_read_all(const struct elf_file *f, uint64_t address, void *ret, size_t n);

/* DT_SONAME into ret[0 … max), with a NUL; its length, 0 if there is none. One read. */
size_t elf_soname(const struct elf_file *f, char *ret, size_t max);

/* A dynamic symbol that is defined, by the file's hash table (GNU's or System V's). A few reads
 * whether it is there or not, at most 4,096 steps. */
bool elf_dynamic_symbol(const struct elf_file *f, const char *name, struct elf_symbol *ret);

/* What a relocation puts at an address, as one of the file's own addresses. Reads the table of
 * relocations as a whole. */
bool elf_relocated(const struct elf_file *f, uint64_t address, uint64_t *ret);

/* The section of this name; NULL if there is none. One read for each section. */
const Elf64_Shdr *elf_section(const struct elf_file *f, const char *name);

/* .symtab, on the heap. */
struct elf_symbols {
	Elf64_Sym *list;
	char *names; /* ends with a NUL */
	uint64_t n, n_names, at;
};

/* Reads .symtab, unless there is none, it is too large, or no name in it has the text `with`.
 * false: nothing is held. */
bool elf_symbols_open(struct elf_symbols *s, const struct elf_file *f, const char *with);

/* The next symbol that is defined, with its name, which lasts until elf_symbols_close(). */
bool elf_symbols_next(struct elf_symbols *s, const char **ret_name, struct elf_symbol *ret);

void elf_symbols_close(struct elf_symbols *s);

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
#define ELF_FILE_TABLE    (64u << 20) /* bytes of a table that is read */
#define ELF_FILE_NAME     128u        /* bytes of a name that is looked up, with its NUL */
#define ELF_FILE_MATCHES  8192u

/* What the dynamic section says. */
struct elf_dynamic {
	uint64_t symbols, strings, strings_bytes, gnu_hash, hash, rela, rela_bytes;
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

/* A dynamic symbol that is defined, by the file's hash table (GNU's or System V's). A few reads
 * whether it is there or not, at most 4,096 steps. */
bool elf_dynamic_symbol(const struct elf_file *f, const char *name, struct elf_symbol *ret);

/* What a relocation puts at an address, as one of the file's own addresses. Reads the table of
 * relocations as a whole. */
bool elf_relocated(const struct elf_file *f, uint64_t address, uint64_t *ret);

/* The section of this name; NULL if there is none. One read for each section. */
const Elf64_Shdr *elf_section(const struct elf_file *f, const char *name);

/* Whether a text is frequent in the names of .symtab: a sixteenth of them is looked at. 1 us for
 * 64 KiB of names. false also where there is no .symtab, or too large a one. */
bool elf_names_have(const struct elf_file *f, const char *text);

/* A name that was looked for, cut where it is longer. */
struct elf_match {
	uint64_t at; /* in the section of names */
	char name[ELF_FILE_NAME];
};

/* Symbols of .symtab whose names begin in one of some ways. 300 KB, however large the tables are,
 * and the names. */
struct elf_symbols {
	const struct elf_file *file;
	const Elf64_Shdr *table;
	struct elf_match *matches; /* in the order of their places */
	uint32_t n_matches;
	Elf64_Sym *piece;
	uint32_t n, at;
	uint64_t done; /* bytes of the table that were read */
};

/* Reads the names of .symtab; `begins` ends with NULL. false: nothing is held, as there is no
 * .symtab, it is too large, or no name begins so. Beyond ELF_FILE_MATCHES names others are left
 * out. */
bool elf_symbols_open(struct elf_symbols *s, const struct elf_file *f, const char *const *begins);

/* The next symbol that is defined and whose name begins so, with its name, which lasts until
 * elf_symbols_close(). */
bool elf_symbols_next(struct elf_symbols *s, const char **ret_name, struct elf_symbol *ret);

void elf_symbols_close(struct elf_symbols *s);

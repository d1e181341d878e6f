/* SPDX-License-Identifier: Apache-2.0 */
/* By section headers, as every JVM that is in use has them. */
#include "jvm/elf-symbols.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SECTIONS    256
#define TABLE_BYTES (16u << 20)

static int read_at(int fd, void *to, uint64_t n, uint64_t at)
{
	ssize_t r = pread(fd, to, n, (off_t)at);

	return r == (ssize_t)n ? 0 : -EIO;
}

/* A section's bytes on the heap, with a zero byte behind them. */
static char *section_read(int fd, const Elf64_Shdr *section)
{
	char *bytes;

	if (section->sh_size == 0 || section->sh_size > TABLE_BYTES)
		return NULL;
	bytes = malloc(section->sh_size + 1);
	if (!bytes || read_at(fd, bytes, section->sh_size, section->sh_offset) != 0) {
		free(bytes);
		return NULL;
	}
	bytes[section->sh_size] = 0;
	return bytes;
}

/* What is looked for. */
struct search {
	const char *const *names;
	size_t n;
	uint64_t *ret;
};

static int symbols_match(const Elf64_Sym *symbols, uint64_t n_symbols, const char *strings,
			 uint64_t n_strings, const struct search *s)
{
	int found = 0;

	for (uint64_t i = 0; i < n_symbols; i++) {
		const char *name = strings + symbols[i].st_name;

		if (symbols[i].st_name >= n_strings || symbols[i].st_value == 0 ||
		    strncmp(name, s->names[0], 8) != 0)
			continue;
		for (size_t k = 0; k < s->n; k++) {
			if (strcmp(name, s->names[k]) != 0)
				continue;
			found += s->ret[k] == 0;
			s->ret[k] = symbols[i].st_value;
		}
	}
	return found;
}

static int sections_search(int fd, const Elf64_Shdr *sections, unsigned n_sections,
			   const struct search *s)
{
	int found = 0;

	for (unsigned i = 0; i < n_sections && found == 0; i++) {
		const Elf64_Shdr *strings_section;
		char *symbols, *strings;

		if (sections[i].sh_type != SHT_DYNSYM || sections[i].sh_link >= n_sections)
			continue;
		strings_section = &sections[sections[i].sh_link];
		symbols = section_read(fd, &sections[i]);
		strings = section_read(fd, strings_section);
		if (symbols && strings)
			found = symbols_match((const Elf64_Sym *)(const void *)symbols,
					      sections[i].sh_size / sizeof(Elf64_Sym), strings,
					      strings_section->sh_size, s);
		free(symbols);
		free(strings);
	}
	return found;
}

int elf_symbols_find(int fd, const char *const *names, size_t n, uint64_t *ret)
{
	Elf64_Shdr sections[SECTIONS];
	Elf64_Ehdr header;

	memset(ret, 0, n * sizeof(*ret));
	if (read_at(fd, &header, sizeof(header), 0) != 0 ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
	    header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shnum > SECTIONS)
		return -ENOEXEC;
	if (header.e_shnum == 0 ||
	    read_at(fd, sections, header.e_shnum * sizeof(*sections), header.e_shoff) != 0)
		return -ENOEXEC;
	return sections_search(fd, sections, header.e_shnum, &(struct search){names, n, ret});
}

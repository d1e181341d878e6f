/* SPDX-License-Identifier: Apache-2.0 */
/* See elf-file.h. Reads, and no mapping: a file that shrinks under a mapping would end the
 * process. */
#include "python/elf-file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TABLE_MAX (48u << 20)
#define NAME_MAX_ 64u

#if defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_X86_64
#endif

static bool read_all(int fd, uint64_t at, void *ret, size_t n)
{
	if (at > INT64_MAX - n)
		return false;
	for (size_t done = 0; done < n;) {
		ssize_t r = pread(fd, (char *)ret + done, n - done, (off_t)(at + done));

		if (r <= 0)
			return false;
		done += (size_t)r;
	}
	return true;
}

bool elf_open(struct elf_file *i, int fd)
{
	memset(i, 0, offsetof(struct elf_file, segments));
	i->n_segments = i->n_sections = 0;
	i->fd = fd;
	if (!read_all(fd, 0, &i->head, sizeof(i->head)) ||
	    memcmp(i->head.e_ident, ELFMAG, SELFMAG) != 0 ||
	    i->head.e_ident[EI_CLASS] != ELFCLASS64 || i->head.e_machine != MACHINE ||
	    i->head.e_phentsize != sizeof(Elf64_Phdr) || i->head.e_phnum == 0 ||
	    i->head.e_phnum > ELF_FILE_SEGMENTS ||
	    !read_all(fd, i->head.e_phoff, i->segments, i->head.e_phnum * sizeof(Elf64_Phdr)))
		return false;
	i->n_segments = i->head.e_phnum;
	if (i->head.e_shentsize == sizeof(Elf64_Shdr) && i->head.e_shnum > 0 &&
	    i->head.e_shnum <= ELF_FILE_SECTIONS && i->head.e_shoff > 0 &&
	    read_all(fd, i->head.e_shoff, i->sections, i->head.e_shnum * sizeof(Elf64_Shdr)))
		i->n_sections = i->head.e_shnum;
	return true;
}

size_t elf_read(const struct elf_file *i, uint64_t address, void *ret, size_t n)
{
	for (uint32_t k = 0; k < i->n_segments; k++) {
		const Elf64_Phdr *p = &i->segments[k];
		uint64_t into = address - p->p_vaddr;

		if (p->p_type != PT_LOAD || address < p->p_vaddr || into >= p->p_filesz)
			continue;
		if (n > p->p_filesz - into)
			n = (size_t)(p->p_filesz - into);
		return p->p_offset <= INT64_MAX - into &&
				       read_all(i->fd, p->p_offset + into, ret, n)
			       ? n
			       : 0;
	}
	return 0;
}

static bool read_at(const struct elf_file *i, uint64_t address, void *ret, size_t n)
{
	return elf_read(i, address, ret, n) == n;
}

/* What the dynamic section says of the tables of symbols. */
struct dynamic {
	uint64_t symbols, strings, strings_bytes, gnu_hash, hash;
};

static bool find_dynamic(const struct elf_file *i, struct dynamic *ret)
{
	Elf64_Dyn entry;

	memset(ret, 0, sizeof(*ret));
	for (uint32_t k = 0; k < i->n_segments; k++) {
		const Elf64_Phdr *p = &i->segments[k];

		if (p->p_type != PT_DYNAMIC)
			continue;
		for (uint64_t at = 0; at < 512 * sizeof(entry); at += sizeof(entry)) {
			if (!read_at(i, p->p_vaddr + at, &entry, sizeof(entry)) ||
			    entry.d_tag == DT_NULL)
				break;
			if (entry.d_tag == DT_SYMTAB)
				ret->symbols = entry.d_un.d_ptr;
			if (entry.d_tag == DT_STRTAB)
				ret->strings = entry.d_un.d_ptr;
			if (entry.d_tag == DT_STRSZ)
				ret->strings_bytes = entry.d_un.d_val;
			if (entry.d_tag == DT_GNU_HASH)
				ret->gnu_hash = entry.d_un.d_ptr;
			if (entry.d_tag == DT_HASH)
				ret->hash = entry.d_un.d_ptr;
		}
	}
	return ret->symbols && ret->strings && (ret->gnu_hash || ret->hash);
}

/* Whether the dynamic symbol of this index is the one of the name, and defined. */
static bool is_symbol(const struct elf_file *i, const struct dynamic *d, uint32_t index,
		      const char *name, struct elf_symbol *ret)
{
	size_t n = strlen(name) + 1;
	char text[NAME_MAX_];
	Elf64_Sym symbol;

	if (n > sizeof(text) ||
	    !read_at(i, d->symbols + (uint64_t)index * sizeof(symbol), &symbol, sizeof(symbol)) ||
	    symbol.st_shndx == SHN_UNDEF || symbol.st_name >= d->strings_bytes ||
	    !read_at(i, d->strings + symbol.st_name, text, n) || memcmp(text, name, n) != 0)
		return false;
	*ret = (struct elf_symbol){symbol.st_value, symbol.st_size};
	return true;
}

static uint32_t gnu_hash(const char *name)
{
	uint32_t h = 5381;

	for (; *name; name++)
		h = h * 33 + (unsigned char)*name;
	return h;
}

static bool find_gnu(const struct elf_file *i, const struct dynamic *d, const char *name,
		     struct elf_symbol *ret)
{
	uint32_t head[4], h = gnu_hash(name), index, value;
	uint64_t bloom, buckets, chains;

	if (!read_at(i, d->gnu_hash, head, sizeof(head)) || head[0] == 0 || head[2] == 0)
		return false;
	if (!read_at(i, d->gnu_hash + 16 + h / 64 % head[2] * 8ull, &bloom, sizeof(bloom)) ||
	    (bloom >> (h & 63) & bloom >> (h >> (head[3] & 31) & 63) & 1) == 0)
		return false;
	buckets = d->gnu_hash + 16 + head[2] * 8ull;
	chains = buckets + head[0] * 4ull;
	if (!read_at(i, buckets + h % head[0] * 4ull, &index, sizeof(index)) || index < head[1])
		return false;
	for (uint32_t steps = 0; steps < 4096; steps++, index++) {
		if (!read_at(i, chains + (uint64_t)(index - head[1]) * 4, &value, sizeof(value)))
			return false;
		if ((value | 1) == (h | 1) && is_symbol(i, d, index, name, ret))
			return true;
		if (value & 1)
			return false;
	}
	return false;
}

static bool find_sysv(const struct elf_file *i, const struct dynamic *d, const char *name,
		      struct elf_symbol *ret)
{
	uint32_t head[2], h = 0, index;

	for (const char *c = name; *c; c++) {
		h = (h << 4) + (unsigned char)*c;
		h ^= h >> 24 & 0xf0;
	}
	h &= 0xfffffff;
	if (!read_at(i, d->hash, head, sizeof(head)) || head[0] == 0 ||
	    !read_at(i, d->hash + 8 + h % head[0] * 4ull, &index, sizeof(index)))
		return false;
	for (uint32_t steps = 0; index != 0 && index < head[1] && steps < 4096; steps++) {
		if (is_symbol(i, d, index, name, ret))
			return true;
		if (!read_at(i, d->hash + 8 + (head[0] + (uint64_t)index) * 4, &index,
			     sizeof(index)))
			return false;
	}
	return false;
}

bool elf_dynamic_symbol(const struct elf_file *i, const char *name, struct elf_symbol *ret)
{
	struct dynamic d;

	if (!find_dynamic(i, &d))
		return false;
	return d.gnu_hash ? find_gnu(i, &d, name, ret) : find_sysv(i, &d, name, ret);
}

const Elf64_Shdr *elf_section(const struct elf_file *i, const char *name)
{
	size_t n = strlen(name) + 1;
	char text[NAME_MAX_];

	if (i->head.e_shstrndx >= i->n_sections || n > sizeof(text))
		return NULL;
	for (uint32_t k = 0; k < i->n_sections; k++) {
		const Elf64_Shdr *names = &i->sections[i->head.e_shstrndx];

		if (i->sections[k].sh_name < names->sh_size &&
		    names->sh_offset <= INT64_MAX - names->sh_size &&
		    read_all(i->fd, names->sh_offset + i->sections[k].sh_name, text, n) &&
		    memcmp(text, name, n) == 0)
			return &i->sections[k];
	}
	return NULL;
}

/* A section's bytes, with a NUL behind; the caller's to free. */
static char *read_section(const struct elf_file *i, const Elf64_Shdr *s)
{
	char *ret = s->sh_size <= TABLE_MAX ? malloc(s->sh_size + 1) : NULL;

	if (ret && !read_all(i->fd, s->sh_offset, ret, s->sh_size)) {
		free(ret);
		return NULL;
	}
	if (ret)
		ret[s->sh_size] = '\0';
	return ret;
}

void elf_each_symbol(const struct elf_file *i, const char *prefix,
		     bool (*take)(void *context, const char *name, const struct elf_symbol *symbol),
		     void *context)
{
	const Elf64_Shdr *table = NULL, *names;
	char *symbols, *strings;
	bool more = true;

	for (uint32_t k = 0; k < i->n_sections && !table; k++)
		if (i->sections[k].sh_type == SHT_SYMTAB)
			table = &i->sections[k];
	if (!table || table->sh_link >= i->n_sections)
		return;
	names = &i->sections[table->sh_link];
	strings = read_section(i, names);
	if (!strings || !memmem(strings, names->sh_size, prefix, strlen(prefix))) {
		free(strings);
		return;
	}
	symbols = read_section(i, table);
	for (uint64_t at = 0; symbols && more && at + sizeof(Elf64_Sym) <= table->sh_size;
	     at += sizeof(Elf64_Sym)) {
		Elf64_Sym symbol;
		struct elf_symbol found;

		memcpy(&symbol, symbols + at, sizeof(symbol));
		found = (struct elf_symbol){symbol.st_value, symbol.st_size};
		if (symbol.st_shndx != SHN_UNDEF && symbol.st_name < names->sh_size &&
		    strncmp(strings + symbol.st_name, prefix, strlen(prefix)) == 0)
			more = take(context, strings + symbol.st_name, &found);
	}
	free(symbols);
	free(strings);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads, and no mapping: a file that shrinks under a mapping would end the process. Looks symbols
 * up by the hash tables, which the dynamic linker needs, so that stripped files have them, too. */
#include "runtime-kit/elf-file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DYNAMIC_ENTRIES 512u
#define STEPS           4096u /* along a chain of symbols */

#if defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_X86_64
#endif

static bool read_at(int fd, uint64_t at, void *ret, size_t n)
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

static void take_dynamic(struct elf_dynamic *d, const Elf64_Dyn *entry)
{
	switch (entry->d_tag) {
	case DT_SYMTAB:
		d->symbols = entry->d_un.d_ptr;
		break;
	case DT_STRTAB:
		d->strings = entry->d_un.d_ptr;
		break;
	case DT_STRSZ:
		d->strings_bytes = entry->d_un.d_val;
		break;
	case DT_GNU_HASH:
		d->gnu_hash = entry->d_un.d_ptr;
		break;
	case DT_HASH:
		d->hash = entry->d_un.d_ptr;
		break;
	case DT_RELA:
		d->rela = entry->d_un.d_ptr;
		break;
	case DT_RELASZ:
		d->rela_bytes = entry->d_un.d_val;
		break;
	case DT_SONAME:
		d->soname = entry->d_un.d_val;
		break;
	default:
		break;
	}
}

static void read_dynamic(struct elf_file *f)
{
	Elf64_Dyn entries[DYNAMIC_ENTRIES];

	for (uint32_t i = 0; i < f->n_segments; i++) {
		size_t n;

		if (f->segments[i].p_type != PT_DYNAMIC)
			continue;
		n = elf_read(f, f->segments[i].p_vaddr, entries, sizeof(entries)) /
		    sizeof(*entries);
		for (size_t k = 0; k < n && entries[k].d_tag != DT_NULL; k++)
			take_dynamic(&f->dynamic, &entries[k]);
		return;
	}
}

bool elf_open(struct elf_file *f, int fd)
{
	memset(f, 0, offsetof(struct elf_file, segments));
	f->fd = fd;
	if (!read_at(fd, 0, &f->head, sizeof(f->head)) ||
	    memcmp(f->head.e_ident, ELFMAG, SELFMAG) != 0 ||
	    f->head.e_ident[EI_CLASS] != ELFCLASS64 || f->head.e_ident[EI_DATA] != ELFDATA2LSB ||
	    f->head.e_machine != MACHINE || f->head.e_phentsize != sizeof(Elf64_Phdr) ||
	    f->head.e_phnum == 0 || f->head.e_phnum > ELF_FILE_SEGMENTS ||
	    !read_at(fd, f->head.e_phoff, f->segments, f->head.e_phnum * sizeof(Elf64_Phdr)))
		return false;
	f->n_segments = f->head.e_phnum;
	if (f->head.e_shentsize == sizeof(Elf64_Shdr) && f->head.e_shnum > 0 &&
	    f->head.e_shnum <= ELF_FILE_SECTIONS && f->head.e_shoff > 0 &&
	    read_at(fd, f->head.e_shoff, f->sections, f->head.e_shnum * sizeof(Elf64_Shdr)))
		f->n_sections = f->head.e_shnum;
	read_dynamic(f);
	return true;
}

size_t elf_read(const struct elf_file *f, uint64_t address, void *ret, size_t n)
{
	for (uint32_t i = 0; i < f->n_segments; i++) {
		const Elf64_Phdr *p = &f->segments[i];
		uint64_t into = address - p->p_vaddr;

		if (p->p_type != PT_LOAD || address < p->p_vaddr || into >= p->p_filesz)
			continue;
		if (n > p->p_filesz - into)
			n = (size_t)(p->p_filesz - into);
		return p->p_offset <= INT64_MAX - into && read_at(f->fd, p->p_offset + into, ret, n)
			       ? n
			       : 0;
	}
	return 0;
}

bool elf_read_all(const struct elf_file *f, uint64_t address, void *ret, size_t n)
{
	return elf_read(f, address, ret, n) == n;
}

size_t elf_soname(const struct elf_file *f, char *ret, size_t max)
{
	const struct elf_dynamic *d = &f->dynamic;
	size_t n;

	if (d->soname == 0 || d->soname >= d->strings_bytes || max == 0)
		return 0;
	n = d->strings_bytes - d->soname < max ? (size_t)(d->strings_bytes - d->soname) : max;
	n = strnlen(ret, elf_read(f, d->strings + d->soname, ret, n));
	if (n == max)
		n--;
	ret[n] = '\0';
	return n;
}

/* Whether the dynamic symbol of this index is the one of the name, and defined. */
static bool is_symbol(const struct elf_file *f, uint32_t index, const char *name,
		      struct elf_symbol *ret)
{
	const struct elf_dynamic *d = &f->dynamic;
	size_t n = strlen(name) + 1;
	char text[ELF_FILE_NAME];
	Elf64_Sym symbol;

	if (n > sizeof(text) ||
	    !elf_read_all(f, d->symbols + (uint64_t)index * sizeof(symbol), &symbol,
			  sizeof(symbol)) ||
	    symbol.st_shndx == SHN_UNDEF || symbol.st_name >= d->strings_bytes ||
	    !elf_read_all(f, d->strings + symbol.st_name, text, n) || memcmp(text, name, n) != 0)
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

static bool find_gnu(const struct elf_file *f, const char *name, struct elf_symbol *ret)
{
	uint32_t head[4], h = gnu_hash(name), index, value;
	uint64_t at = f->dynamic.gnu_hash, bloom, buckets, chains;

	if (!elf_read_all(f, at, head, sizeof(head)) || head[0] == 0 || head[2] == 0)
		return false;
	if (elf_read_all(f, at + 16 + (h / 64 % head[2]) * 8ull, &bloom, sizeof(bloom)) &&
	    (!(bloom >> h % 64 & 1) || !(bloom >> (h >> (head[3] & 31)) % 64 & 1)))
		return false;
	buckets = at + 16 + head[2] * 8ull;
	chains = buckets + head[0] * 4ull;
	if (!elf_read_all(f, buckets + h % head[0] * 4ull, &index, sizeof(index)) ||
	    index < head[1])
		return false;
	for (uint32_t steps = 0; steps < STEPS; steps++, index++) {
		if (!elf_read_all(f, chains + (uint64_t)(index - head[1]) * 4, &value,
				  sizeof(value)))
			return false;
		if ((value | 1) == (h | 1) && is_symbol(f, index, name, ret))
			return true;
		if (value & 1)
			return false;
	}
	return false;
}

static bool find_sysv(const struct elf_file *f, const char *name, struct elf_symbol *ret)
{
	uint64_t at = f->dynamic.hash;
	uint32_t head[2], h = 0, index;

	for (const char *c = name; *c; c++) {
		h = (h << 4) + (unsigned char)*c;
		h ^= h >> 24 & 0xf0;
	}
	h &= 0xfffffff;
	if (!elf_read_all(f, at, head, sizeof(head)) || head[0] == 0 ||
	    !elf_read_all(f, at + 8 + h % head[0] * 4ull, &index, sizeof(index)))
		return false;
	for (uint32_t steps = 0; index != 0 && index < head[1] && steps < STEPS; steps++) {
		if (is_symbol(f, index, name, ret))
			return true;
		if (!elf_read_all(f, at + 8 + (head[0] + (uint64_t)index) * 4, &index,
				  sizeof(index)))
			return false;
	}
	return false;
}

bool elf_dynamic_symbol(const struct elf_file *f, const char *name, struct elf_symbol *ret)
{
	const struct elf_dynamic *d = &f->dynamic;

	if (d->symbols == 0 || d->strings == 0)
		return false;
	if (d->gnu_hash != 0)
		return find_gnu(f, name, ret);
	return d->hash != 0 && find_sysv(f, name, ret);
}

bool elf_relocated(const struct elf_file *f, uint64_t address, uint64_t *ret)
{
	const struct elf_dynamic *d = &f->dynamic;
	Elf64_Sym symbol = {0};
	uint64_t found = 0;
	Elf64_Rela *list;
	size_t n;

	list = d->rela_bytes > 0 && d->rela_bytes <= ELF_FILE_TABLE ? malloc(d->rela_bytes) : NULL;
	n = list ? elf_read(f, d->rela, list, d->rela_bytes) / sizeof(*list) : 0;
	while (found < n && list[found].r_offset != address)
		found++;
	if (found < n && ELF64_R_SYM(list[found].r_info) != 0 &&
	    !elf_read_all(f, d->symbols + ELF64_R_SYM(list[found].r_info) * sizeof(symbol), &symbol,
			  sizeof(symbol)))
		n = 0;
	if (found < n)
		*ret = symbol.st_value + (uint64_t)list[found].r_addend;
	free(list);
	return found < n;
}

const Elf64_Shdr *elf_section(const struct elf_file *f, const char *name)
{
	size_t n = strlen(name) + 1;
	char text[ELF_FILE_NAME];

	if (f->head.e_shstrndx >= f->n_sections || n > sizeof(text))
		return NULL;
	for (uint32_t i = 0; i < f->n_sections; i++) {
		const Elf64_Shdr *names = &f->sections[f->head.e_shstrndx];

		if (f->sections[i].sh_name < names->sh_size &&
		    names->sh_offset <= INT64_MAX - names->sh_size &&
		    read_at(f->fd, names->sh_offset + f->sections[i].sh_name, text, n) &&
		    memcmp(text, name, n) == 0)
			return &f->sections[i];
	}
	return NULL;
}

/* A section's bytes, with a NUL behind; the caller's to free. */
static char *read_section(const struct elf_file *f, const Elf64_Shdr *s)
{
	char *ret = s->sh_size <= ELF_FILE_TABLE ? malloc(s->sh_size + 1) : NULL;

	if (ret && !read_at(f->fd, s->sh_offset, ret, s->sh_size)) {
		free(ret);
		return NULL;
	}
	if (ret)
		ret[s->sh_size] = '\0';
	return ret;
}

bool elf_symbols_open(struct elf_symbols *s, const struct elf_file *f, const char *with)
{
	const Elf64_Shdr *table = NULL;
	char *names, *list = NULL;

	for (uint32_t i = 0; i < f->n_sections && !table; i++)
		if (f->sections[i].sh_type == SHT_SYMTAB &&
		    f->sections[i].sh_entsize == sizeof(Elf64_Sym))
			table = &f->sections[i];
	if (!table || table->sh_link >= f->n_sections)
		return false;
	names = read_section(f, &f->sections[table->sh_link]);
	if (names && memmem(names, f->sections[table->sh_link].sh_size, with, strlen(with)))
		list = read_section(f, table);
	if (!list) {
		free(names);
		return false;
	}
	*s = (struct elf_symbols){
		.list = (Elf64_Sym *)(void *)list,
		.names = names,
		.n = table->sh_size / sizeof(Elf64_Sym),
		.n_names = f->sections[table->sh_link].sh_size,
	};
	return true;
}

bool elf_symbols_next(struct elf_symbols *s, const char **ret_name, struct elf_symbol *ret)
{
	while (s->at < s->n) {
		const Elf64_Sym *symbol = &s->list[s->at++];

		if (symbol->st_shndx == SHN_UNDEF || symbol->st_name >= s->n_names)
			continue;
		*ret_name = s->names + symbol->st_name;
		*ret = (struct elf_symbol){symbol->st_value, symbol->st_size};
		return true;
	}
	return false;
}

void elf_symbols_close(struct elf_symbols *s)
{
	free(s->list);
	free(s->names);
	*s = (struct elf_symbols){0};
}

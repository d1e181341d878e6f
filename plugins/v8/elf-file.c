/* SPDX-License-Identifier: Apache-2.0 */
/* Sections and symbols by pread: nothing is mapped, since the file is another's and may shrink. */
#include "elf-file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool elf_at(const struct v8_elf *e, uint64_t offset, void *ret, size_t n)
{
	return offset <= e->bytes && n <= e->bytes - offset &&
	       pread(e->fd, ret, n, (off_t)offset) == (ssize_t)n;
}

static void elf_note_section(struct v8_elf *e, const Elf64_Shdr *s)
{
	if (s->sh_type == SHT_DYNSYM && s->sh_entsize == sizeof(Elf64_Sym)) {
		e->dynsym = *s;
		if (s->sh_link < e->n_sections)
			e->dynstr = e->sections[s->sh_link];
	} else if (s->sh_type == SHT_GNU_HASH) {
		e->hash = *s;
	}
}

int elf_open(struct v8_elf *e, int fd)
{
	Elf64_Ehdr head;
	struct stat st;

	*e = (struct v8_elf){.fd = fd};
	if (fstat(fd, &st) != 0 || st.st_size <= 0)
		return -EINVAL;
	e->bytes = (uint64_t)st.st_size;
	if (!elf_at(e, 0, &head, sizeof(head)) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
	    head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != ELFDATA2LSB ||
	    head.e_phentsize != sizeof(Elf64_Phdr) || head.e_phnum > V8_ELF_SEGMENTS ||
	    head.e_shentsize != sizeof(Elf64_Shdr) || head.e_shnum > V8_ELF_SECTIONS)
		return -EINVAL;
	e->n_segments = head.e_phnum;
	e->n_sections = head.e_shnum;
	if (!elf_at(e, head.e_phoff, e->segments, e->n_segments * sizeof(Elf64_Phdr)) ||
	    !elf_at(e, head.e_shoff, e->sections, e->n_sections * sizeof(Elf64_Shdr)))
		return -EINVAL;
	for (uint32_t i = 0; i < e->n_sections; i++)
		elf_note_section(e, &e->sections[i]);
	return 0;
}

bool elf_read(const struct v8_elf *e, uint64_t address, void *ret, size_t n)
{
	for (uint32_t i = 0; i < e->n_segments; i++) {
		const Elf64_Phdr *p = &e->segments[i];

		if (p->p_type == PT_LOAD && address >= p->p_vaddr &&
		    address - p->p_vaddr < p->p_filesz && n <= p->p_filesz - (address - p->p_vaddr))
			return elf_at(e, p->p_offset + (address - p->p_vaddr), ret, n);
	}
	return false;
}

static uint32_t elf_hash(const char *name)
{
	uint32_t h = 5381;

	for (; *name; name++)
		h = h * 33 + (uint8_t)*name;
	return h;
}

static bool elf_named(const struct v8_elf *e, uint32_t index, const char *name, Elf64_Sym *ret)
{
	char text[128];
	size_t n = strlen(name) + 1;

	return n <= sizeof(text) &&
	       elf_at(e, e->dynsym.sh_offset + (uint64_t)index * sizeof(*ret), ret, sizeof(*ret)) &&
	       ret->st_shndx != SHN_UNDEF &&
	       elf_at(e, e->dynstr.sh_offset + ret->st_name, text, n) && memcmp(text, name, n) == 0;
}

bool elf_dynamic(const struct v8_elf *e, const char *name, Elf64_Sym *ret)
{
	struct {
		uint32_t n_buckets, first, n_bloom, shift;
	} head;
	uint32_t hash = elf_hash(name), index, chain;
	uint64_t buckets, chains;

	if (e->dynsym.sh_size == 0 || e->hash.sh_size < sizeof(head) ||
	    !elf_at(e, e->hash.sh_offset, &head, sizeof(head)) || head.n_buckets == 0)
		return false;
	buckets = e->hash.sh_offset + sizeof(head) + 8ull * head.n_bloom;
	chains = buckets + 4ull * head.n_buckets;
	if (!elf_at(e, buckets + 4ull * (hash % head.n_buckets), &index, 4) || index < head.first)
		return false;
	for (int i = 0; i < 256; i++, index++) {
		if (!elf_at(e, chains + 4ull * (index - head.first), &chain, 4))
			return false;
		if ((chain | 1) == (hash | 1) && elf_named(e, index, name, ret))
			return true;
		if (chain & 1)
			return false;
	}
	return false;
}

static void *elf_section(const struct v8_elf *e, const Elf64_Shdr *s)
{
	char *bytes;

	if (s->sh_size == 0 || s->sh_size > V8_ELF_TABLE)
		return NULL;
	bytes = malloc(s->sh_size + 1);
	if (bytes && !elf_at(e, s->sh_offset, bytes, s->sh_size)) {
		free(bytes);
		return NULL;
	}
	if (bytes)
		bytes[s->sh_size] = '\0';
	return bytes;
}

bool elf_symbols(const struct v8_elf *e,
		 void (*each)(void *context, const char *name, const Elf64_Sym *symbol),
		 void *context)
{
	for (uint32_t i = 0; i < e->n_sections; i++) {
		const Elf64_Shdr *s = &e->sections[i];
		Elf64_Sym *symbols;
		char *names;

		if (s->sh_type != SHT_SYMTAB || s->sh_entsize != sizeof(*symbols) ||
		    s->sh_link >= e->n_sections)
			continue;
		symbols = elf_section(e, s);
		names = elf_section(e, &e->sections[s->sh_link]);
		for (uint64_t k = 0; symbols && names && k < s->sh_size / sizeof(*symbols); k++)
			if (symbols[k].st_name < e->sections[s->sh_link].sh_size &&
			    symbols[k].st_shndx != SHN_UNDEF)
				each(context, names + symbols[k].st_name, &symbols[k]);
		free(names);
		free(symbols);
		return symbols && names;
	}
	return false;
}

static bool elf_relocation(const struct v8_elf *e, const Elf64_Rela *r, uint64_t *ret)
{
	uint64_t symbol = ELF64_R_SYM(r->r_info);
	Elf64_Sym s = {0};

	if (symbol != 0 && !elf_at(e, e->dynsym.sh_offset + symbol * sizeof(s), &s, sizeof(s)))
		return false;
	*ret = s.st_value + (uint64_t)r->r_addend;
	return true;
}

bool elf_relocated(const struct v8_elf *e, uint64_t address, uint64_t *ret)
{
	bool found = false;

	for (uint32_t i = 0; i < e->n_sections && !found; i++) {
		const Elf64_Shdr *s = &e->sections[i];
		Elf64_Rela *r;

		if (s->sh_type != SHT_RELA || s->sh_entsize != sizeof(*r))
			continue;
		r = elf_section(e, s);
		for (uint64_t k = 0; r && !found && k < s->sh_size / sizeof(*r); k++)
			if (r[k].r_offset == address)
				found = elf_relocation(e, &r[k], ret);
		free(r);
	}
	return found;
}

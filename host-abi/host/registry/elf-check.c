/* SPDX-License-Identifier: Apache-2.0 */
/* See elf-check.h. The rules are those of the ELF specification (gABI 4.1, chapters 4 and 5) for
 * what a loader touches: file header, program headers, loadable segments, dynamic section. The
 * section header table is not needed for loading, but linkers write it last, so it shows whether
 * the end of the file is there. */
#include "host/registry/elf-check.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#if defined(__x86_64__)
#define MACHINE      EM_X86_64
#define MACHINE_NAME "x86-64"
#elif defined(__aarch64__)
#define MACHINE      EM_AARCH64
#define MACHINE_NAME "aarch64"
#else
#error "name this machine's ELF number here"
#endif

static int check_header(struct plugin_file *file, struct error *err)
{
	const Elf64_Ehdr *h = &file->header;
	int r;

	if (file->size < SELFMAG)
		return error_set(err, -ENOEXEC, "it is not an ELF file (%llu bytes long)",
				 (unsigned long long)file->size);
	r = plugin_file_read(file, &file->header, SELFMAG, 0, "its magic number", err);
	if (r < 0)
		return r;
	if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0)
		return error_set(err, -ENOEXEC, "it is not an ELF file");
	r = plugin_file_read(file, &file->header, sizeof(file->header), 0, "its file header", err);
	if (r < 0)
		return r;
	if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB ||
	    h->e_machine != MACHINE)
		return error_set(
			err, -ENOEXEC,
			"it is for another machine (ELF machine %u), this one is " MACHINE_NAME,
			h->e_machine);
	if (h->e_type != ET_DYN)
		return error_set(err, -ENOEXEC, "it is not a shared object (ELF type %u)",
				 h->e_type);
	return 0;
}

static int check_segments(struct plugin_file *file, struct error *err)
{
	uint16_t n = file->header.e_phnum;
	bool loadable = false;
	int r;

	if (n == 0 || n > PLUGIN_FILE_SEGMENTS || file->header.e_phentsize != sizeof(Elf64_Phdr))
		return plugin_file_half_written("its program headers make no sense", err);
	r = plugin_file_read(file, file->segments, n * sizeof(Elf64_Phdr), file->header.e_phoff,
			     "its program header table", err);
	if (r < 0)
		return r;
	for (uint16_t i = 0; i < n; i++) {
		const Elf64_Phdr *p = &file->segments[i];

		if (p->p_type != PT_LOAD)
			continue;
		loadable = true;
		if (!plugin_file_within(p->p_offset, p->p_filesz, file->size))
			return plugin_file_cut_off(file, "a segment", err);
		if (p->p_memsz < p->p_filesz || p->p_vaddr > UINT64_MAX - p->p_memsz)
			return plugin_file_half_written("a segment's sizes make no sense", err);
	}
	return loadable ? 0 : plugin_file_half_written("nothing in it can be loaded", err);
}

/* Linkers write this table last. */
static int check_sections(const struct plugin_file *file, struct error *err)
{
	const Elf64_Ehdr *h = &file->header;
	Elf64_Shdr names;
	int r;

	if (h->e_shoff == 0)
		return 0;
	if (h->e_shentsize != sizeof(Elf64_Shdr))
		return plugin_file_half_written("its section headers make no sense", err);
	if (!plugin_file_within(h->e_shoff, (uint64_t)h->e_shnum * sizeof(Elf64_Shdr), file->size))
		return plugin_file_cut_off(file, "its section header table", err);
	if (h->e_shstrndx >= h->e_shnum)
		return 0;
	r = plugin_file_read(file, &names, sizeof(names),
			     h->e_shoff + h->e_shstrndx * sizeof(Elf64_Shdr),
			     "its section header table", err);
	if (r < 0)
		return r;
	return names.sh_type == SHT_STRTAB
		       ? 0
		       : plugin_file_half_written("its section header table is blank", err);
}

/* The tables that dlopen walks through pointers of the dynamic section. */
static int check_dynamic(const struct plugin_file *file, struct error *err)
{
	Elf64_Dyn entries[PLUGIN_FILE_DYNAMIC];
	bool strings = false, symbols = false;
	uint64_t offset;
	int n = plugin_file_dynamic(file, entries, err);

	for (int i = 0; i < n; i++) {
		const Elf64_Dyn *d = &entries[i];

		if (d->d_tag != DT_STRTAB && d->d_tag != DT_SYMTAB)
			continue;
		if (!plugin_file_offset(file, d->d_un.d_ptr, 1, &offset))
			return plugin_file_half_written("its symbol table lies outside of it", err);
		strings |= d->d_tag == DT_STRTAB;
		symbols |= d->d_tag == DT_SYMTAB;
	}
	if (n >= 0 && (!strings || !symbols))
		return plugin_file_half_written("its dynamic section is not whole", err);
	return n < 0 ? n : 0;
}

int elf_check(int fd, struct plugin_file *ret, struct error *err)
{
	struct stat st;
	int r;

	*ret = (struct plugin_file){.fd = fd};
	if (fstat(fd, &st) < 0)
		return error_errno(err, -errno, "cannot be examined");
	if (!S_ISREG(st.st_mode))
		return error_set(err, -ENOEXEC, "it is not a regular file");
	ret->size = (uint64_t)st.st_size;

	r = check_header(ret, err);
	if (r == 0)
		r = check_sections(ret, err);
	if (r == 0)
		r = check_segments(ret, err);
	if (r == 0)
		r = check_dynamic(ret, err);
	return r;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* See elf-check.h. The rules are those of the ELF specification (gABI 4.1, chapters 4 and 5) for
 * what a loader touches: file header, program headers, loadable segments, dynamic section. The
 * section header table is not needed for loading, but linkers write it last, so it shows whether
 * the end of the file is there. */
#include "host/registry/elf-check.h"

#include "base/file.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define MAX_SEGMENTS 64u
#define MAX_DYNAMIC  1024u

#if defined(__x86_64__)
#define MACHINE      EM_X86_64
#define MACHINE_NAME "x86-64"
#elif defined(__aarch64__)
#define MACHINE      EM_AARCH64
#define MACHINE_NAME "aarch64"
#else
#error "name this machine's ELF number here"
#endif

struct image {
	int fd;
	uint64_t size;
	Elf64_Ehdr header;
	Elf64_Phdr segments[MAX_SEGMENTS];
};

static int cut_off(const struct image *image, const char *what, struct error *err)
{
	return error_set(
		err, -ENOEXEC,
		"it is truncated: %s lies beyond its end at %llu bytes; copy or build it again",
		what, (unsigned long long)image->size);
}

static int half_written(const char *what, struct error *err)
{
	return error_set(err, -ENOEXEC, "it is damaged or half-written: %s; copy or build it again",
			 what);
}

static bool lies_within(uint64_t offset, uint64_t length, uint64_t size)
{
	return offset <= size && length <= size - offset;
}

/* The bytes of the file at `offset`; a file that shrank meanwhile is cut off. */
static int read_at(const struct image *image, void *data, size_t n, uint64_t offset,
		   const char *what, struct error *err)
{
	int r;

	if (!lies_within(offset, n, image->size))
		return cut_off(image, what, err);
	r = file_pread(image->fd, data, n, offset);
	if (r == -ENODATA)
		return cut_off(image, what, err);
	return r < 0 ? error_errno(err, r, "cannot be read") : 0;
}

static int check_header(struct image *image, struct error *err)
{
	const Elf64_Ehdr *h = &image->header;
	int r;

	if (image->size < SELFMAG)
		return error_set(err, -ENOEXEC, "it is not an ELF file (%llu bytes long)",
				 (unsigned long long)image->size);
	r = read_at(image, &image->header, SELFMAG, 0, "its magic number", err);
	if (r < 0)
		return r;
	if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0)
		return error_set(err, -ENOEXEC, "it is not an ELF file");
	r = read_at(image, &image->header, sizeof(image->header), 0, "its file header", err);
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

static int check_segments(struct image *image, struct error *err)
{
	uint16_t n = image->header.e_phnum;
	bool loadable = false;
	int r;

	if (n == 0 || n > MAX_SEGMENTS || image->header.e_phentsize != sizeof(Elf64_Phdr))
		return half_written("its program headers make no sense", err);
	r = read_at(image, image->segments, n * sizeof(Elf64_Phdr), image->header.e_phoff,
		    "its program header table", err);
	if (r < 0)
		return r;
	for (uint16_t i = 0; i < n; i++) {
		const Elf64_Phdr *p = &image->segments[i];

		if (p->p_type != PT_LOAD)
			continue;
		loadable = true;
		if (!lies_within(p->p_offset, p->p_filesz, image->size))
			return cut_off(image, "a segment", err);
		if (p->p_memsz < p->p_filesz || p->p_vaddr > UINT64_MAX - p->p_memsz)
			return half_written("a segment's sizes make no sense", err);
	}
	return loadable ? 0 : half_written("nothing in it can be loaded", err);
}

/* Linkers write this table last. */
static int check_sections(const struct image *image, struct error *err)
{
	const Elf64_Ehdr *h = &image->header;
	Elf64_Shdr names;
	int r;

	if (h->e_shoff == 0)
		return 0;
	if (h->e_shentsize != sizeof(Elf64_Shdr))
		return half_written("its section headers make no sense", err);
	if (!lies_within(h->e_shoff, (uint64_t)h->e_shnum * sizeof(Elf64_Shdr), image->size))
		return cut_off(image, "its section header table", err);
	if (h->e_shstrndx >= h->e_shnum)
		return 0;
	r = read_at(image, &names, sizeof(names), h->e_shoff + h->e_shstrndx * sizeof(Elf64_Shdr),
		    "its section header table", err);
	if (r < 0)
		return r;
	return names.sh_type == SHT_STRTAB ? 0
					   : half_written("its section header table is blank", err);
}

/* Whether n bytes at a virtual address come from the file. */
static bool is_loaded(const struct image *image, uint64_t address, uint64_t n)
{
	for (uint16_t i = 0; i < image->header.e_phnum; i++) {
		const Elf64_Phdr *p = &image->segments[i];

		if (p->p_type == PT_LOAD && address >= p->p_vaddr &&
		    lies_within(address - p->p_vaddr, n, p->p_filesz))
			return true;
	}
	return false;
}

/* The tables that dlopen walks through pointers of the dynamic section. */
static int check_dynamic(const struct image *image, const Elf64_Phdr *dynamic, struct error *err)
{
	uint64_t n = dynamic->p_filesz / sizeof(Elf64_Dyn);
	bool strings = false, symbols = false, ended = false;

	for (uint64_t i = 0; i < n && i < MAX_DYNAMIC && !ended; i++) {
		Elf64_Dyn d;
		int r = read_at(image, &d, sizeof(d), dynamic->p_offset + i * sizeof(d),
				"its dynamic section", err);

		if (r < 0)
			return r;
		ended = d.d_tag == DT_NULL;
		if (d.d_tag != DT_STRTAB && d.d_tag != DT_SYMTAB)
			continue;
		if (!is_loaded(image, d.d_un.d_ptr, 1))
			return half_written("its symbol table lies outside of it", err);
		strings |= d.d_tag == DT_STRTAB;
		symbols |= d.d_tag == DT_SYMTAB;
	}
	if (!ended || !strings || !symbols)
		return half_written("its dynamic section is not whole", err);
	return 0;
}

static int check_dynamics(const struct image *image, struct error *err)
{
	for (uint16_t i = 0; i < image->header.e_phnum; i++) {
		const Elf64_Phdr *p = &image->segments[i];

		if (p->p_type != PT_DYNAMIC)
			continue;
		if (!is_loaded(image, p->p_vaddr, p->p_filesz))
			return half_written("its dynamic section lies outside of it", err);
		return check_dynamic(image, p, err);
	}
	return half_written("it has no dynamic section", err);
}

int elf_check(int fd, struct error *err)
{
	struct image image = {.fd = fd};
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return error_errno(err, -errno, "cannot be examined");
	if (!S_ISREG(st.st_mode))
		return error_set(err, -ENOEXEC, "it is not a regular file");
	image.size = (uint64_t)st.st_size;

	r = check_header(&image, err);
	if (r == 0)
		r = check_sections(&image, err);
	if (r == 0)
		r = check_segments(&image, err);
	if (r == 0)
		r = check_dynamics(&image, err);
	return r;
}

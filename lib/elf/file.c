/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of an ELF file. Own readers instead of libelf's, which either map the file or take memory
 * for what its headers claim (docs/decisions/0004).
 *
 * Invariant: no size or offset out of the file is used in arithmetic that can wrap, and none is
 * allocated before it was compared with the file's size. */
#include "elf/file.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

#define PAGE UINT64_C(4096)

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "records are read as they lie in the file");

static int check_ident(const unsigned char *ident, struct error *err)
{
	if (memcmp(ident, ELFMAG, SELFMAG) != 0)
		return error_set(err, -ENOEXEC, "not an ELF file");
	if (ident[EI_CLASS] == ELFCLASS32)
		return error_set(err, -ENOTSUP, "a 32-bit ELF file; only 64-bit ones are read");
	if (ident[EI_CLASS] != ELFCLASS64)
		return error_set(err, -ENOEXEC, "unknown ELF class %u", ident[EI_CLASS]);
	if (ident[EI_DATA] != ELFDATA2LSB)
		return error_set(err, -ENOTSUP,
				 "not a little-endian ELF file; only these are read");
	if (ident[EI_VERSION] != EV_CURRENT)
		return error_set(err, -ENOEXEC, "unknown ELF version %u", ident[EI_VERSION]);
	return 0;
}

/* `count` records of `size` bytes at `offset`, into memory to free. */
static int read_table(const struct elf_file *f, uint64_t offset, size_t count, size_t size,
		      void **ret)
{
	size_t n = count * size;
	void *p;
	int r;

	check(count <= ELF_MAX_SECTIONS);
	if (!elf_file_holds(f, offset, n))
		return -ENOEXEC;
	p = malloc(n);
	if (!p)
		return -ENOMEM;
	r = file_pread(f->fd, p, n, offset);
	if (r < 0) {
		free(p);
		return r;
	}
	*ret = p;
	return 0;
}

static int load_segments(struct elf_file *f, const Elf64_Ehdr *header, struct error *err)
{
	void *p;
	int r;

	if (header->e_phnum == 0)
		return 0;
	if (header->e_phentsize != sizeof(Elf64_Phdr))
		return error_set(err, -ENOEXEC, "program headers of %u bytes", header->e_phentsize);
	if (header->e_phnum > ELF_MAX_SEGMENTS)
		return error_set(err, -E2BIG, "%u program headers; at most %u are read",
				 header->e_phnum, ELF_MAX_SEGMENTS);
	r = read_table(f, header->e_phoff, header->e_phnum, sizeof(Elf64_Phdr), &p);
	if (r < 0)
		return error_errno(err, r, "cannot read the program headers");
	f->segments = p;
	f->n_segments = header->e_phnum;
	return 0;
}

int elf_file_open(struct elf_file *f, int fd, struct error *err)
{
	struct elf_file file = {.fd = fd};
	Elf64_Ehdr header;
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return error_errno(err, -errno, "cannot examine the file");
	if (!S_ISREG(st.st_mode))
		return error_set(err, -ENOEXEC, "not a regular file");
	file.size = (uint64_t)st.st_size;
	r = file_pread(fd, &header, sizeof(header), 0);
	if (r == -ENODATA)
		return error_set(err, -ENOEXEC, "shorter than an ELF header");
	if (r < 0)
		return error_errno(err, r, "cannot read the ELF header");
	r = check_ident(header.e_ident, err);
	if (r < 0)
		return r;
	file.type = header.e_type;
	file.machine = header.e_machine;
	file.entry = header.e_entry;
	file.shoff = header.e_shentsize == sizeof(Elf64_Shdr) ? header.e_shoff : 0;
	file.shnum = header.e_shnum;
	file.shstrndx = header.e_shstrndx;
	r = load_segments(&file, &header, err);
	if (r < 0)
		return r;
	*f = file;
	return 0;
}

void elf_file_close(struct elf_file *f)
{
	free(f->segments);
	free(f->sections);
	buf_free(&f->names);
	*f = ELF_FILE_NULL;
}

/* Counts that do not fit the header stand in section 0 (gABI, "e_shnum"). */
static int extended_counts(const struct elf_file *f, uint64_t *n, uint32_t *names)
{
	Elf64_Shdr first;
	int r;

	if (f->shnum != 0 && f->shstrndx != SHN_XINDEX)
		return 0;
	r = elf_file_holds(f, f->shoff, sizeof(first))
		    ? file_pread(f->fd, &first, sizeof(first), f->shoff)
		    : -ENOEXEC;
	if (r < 0)
		return r;
	if (f->shnum == 0)
		*n = first.sh_size;
	if (f->shstrndx == SHN_XINDEX)
		*names = first.sh_link;
	return 0;
}

static int load_names(struct elf_file *f, uint32_t at)
{
	int r;

	if (at == SHN_UNDEF || at >= f->n_sections)
		return 0;
	r = elf_file_read_section(f, &f->sections[at], (size_t)1 << 20, &f->names);
	if (r < 0)
		return r;
	return buf_putc(&f->names, '\0');
}

int elf_file_load_sections(struct elf_file *f, struct error *err)
{
	uint64_t n = f->shnum;
	uint32_t names = f->shstrndx;
	void *p;
	int r;

	if (f->sections || f->shoff == 0)
		return 0;
	r = extended_counts(f, &n, &names);
	if (r < 0)
		return error_errno(err, r, "cannot read the section headers");
	if (n == 0)
		return 0;
	if (n > ELF_MAX_SECTIONS)
		return error_set(err, -E2BIG, "%llu sections; at most %u are read",
				 (unsigned long long)n, ELF_MAX_SECTIONS);
	r = read_table(f, f->shoff, (size_t)n, sizeof(Elf64_Shdr), &p);
	if (r < 0)
		return error_errno(err, r, "cannot read the section headers");
	check(f->n_sections == 0 && f->names.n == 0);
	f->sections = p;
	f->n_sections = (size_t)n;
	r = load_names(f, names);
	if (r == -ENOMEM) {
		free(take_ptr(f->sections));
		f->n_sections = 0;
		return r;
	}
	/* Without their names sections are still found by type. */
	if (r < 0)
		buf_clear(&f->names);
	return 0;
}

struct str elf_file_section_name(const struct elf_file *f, const Elf64_Shdr *section)
{
	if (section->sh_name >= f->names.n)
		return STR_NULL;
	check(f->names.p[f->names.n - 1] == '\0');
	return str_of(f->names.p + section->sh_name);
}

bool elf_file_section_is(const struct elf_file *f, const Elf64_Shdr *section, const char *name)
{
	struct str s = elf_file_section_name(f, section), sought = str_of(name);

	if (str_starts(s, STR(".zdebug_")) && str_starts(sought, STR(".debug_")))
		s = (struct str){s.p + 2, s.n - 2},
		sought = (struct str){sought.p + 1, sought.n - 1};
	return str_eq(s, sought);
}

const Elf64_Shdr *elf_file_section(const struct elf_file *f, const char *name)
{
	for (size_t i = 1; i < f->n_sections; i++)
		if (elf_file_section_is(f, &f->sections[i], name))
			return &f->sections[i];
	return NULL;
}

const Elf64_Shdr *elf_file_section_of_type(const struct elf_file *f, uint32_t type)
{
	for (size_t i = 1; i < f->n_sections; i++)
		if (f->sections[i].sh_type == type)
			return &f->sections[i];
	return NULL;
}

static bool executable(const Elf64_Phdr *p)
{
	return p->p_flags & PF_X;
}

static bool holds(const Elf64_Phdr *p, uint64_t offset)
{
	return offset >= p->p_offset && offset - p->p_offset < p->p_filesz;
}

/* Whether a loader's whole pages of this segment hold the byte. */
static bool pages_hold(const Elf64_Phdr *p, uint64_t offset)
{
	uint64_t slack = p->p_offset % PAGE;

	return p->p_filesz != 0 && offset >= p->p_offset - slack &&
	       (offset - (p->p_offset - slack)) / PAGE <=
		       (slack + (p->p_filesz - 1) % PAGE) / PAGE + (p->p_filesz - 1) / PAGE;
}

/* How well a segment answers for a byte, 0: not at all. What is executed is mapped from an
 * executable one, with the whole pages at its ends. */
static int rank(const Elf64_Phdr *p, uint64_t offset)
{
	bool exact = holds(p, offset);

	if (p->p_type != PT_LOAD || !(exact || pages_hold(p, offset)))
		return 0;
	return 1 + exact + 2 * executable(p);
}

int elf_file_vaddr(const struct elf_file *f, uint64_t offset, uint64_t *ret)
{
	const Elf64_Phdr *best = NULL;

	for (size_t i = 0; i < f->n_segments; i++)
		if (rank(&f->segments[i], offset) > (best ? rank(best, offset) : 0))
			best = &f->segments[i];
	if (!best)
		return -ENOENT;
	/* Modulo 2^64: a hostile segment gives a wrong address, not a trap. */
	*ret = best->p_vaddr + (offset - best->p_offset);
	return 0;
}

struct elf_range elf_segment_bytes(const struct elf_file *f, size_t i)
{
	const Elf64_Phdr *p = &f->segments[i];
	uint64_t left = p->p_offset < f->size ? f->size - p->p_offset : 0;

	check(i < f->n_segments);
	return (struct elf_range){p->p_offset, p->p_filesz < left ? p->p_filesz : left};
}

int elf_segment_range(const struct elf_file *f, uint64_t address, struct elf_range *ret)
{
	for (size_t i = 0; i < f->n_segments; i++) {
		struct elf_range bytes = elf_segment_bytes(f, i);
		uint64_t into = address - f->segments[i].p_vaddr;

		if (f->segments[i].p_type != PT_LOAD || address < f->segments[i].p_vaddr ||
		    into >= bytes.size)
			continue;
		*ret = (struct elf_range){bytes.offset + into, bytes.size - into};
		return 0;
	}
	return -ENOENT;
}

int elf_file_read_code(const struct elf_file *f, uint64_t address, void *p, size_t n)
{
	struct elf_range range;
	int r;

	check(n <= INT_MAX);
	if (elf_segment_range(f, address, &range) < 0)
		return 0;
	n = n < range.size ? n : (size_t)range.size;
	r = file_pread(f->fd, p, n, range.offset);
	return r < 0 ? r : (int)n;
}

const Elf64_Phdr *elf_file_segment(const struct elf_file *f, uint32_t type)
{
	for (size_t i = 0; i < f->n_segments; i++)
		if (f->segments[i].p_type == type)
			return &f->segments[i];
	return NULL;
}

int elf_file_dynamic(const struct elf_file *f, Elf64_Dyn entries[ELF_DYNAMIC_MAX])
{
	const Elf64_Phdr *p = elf_file_segment(f, PT_DYNAMIC);
	struct elf_range range = p ? elf_segment_bytes(f, (size_t)(p - f->segments))
				   : (struct elf_range){0};
	size_t n = range.size / sizeof(*entries);
	int r;

	n = n < ELF_DYNAMIC_MAX ? n : ELF_DYNAMIC_MAX;
	r = n ? file_pread(f->fd, entries, n * sizeof(*entries), range.offset) : 0;
	return r < 0 ? r : (int)n;
}

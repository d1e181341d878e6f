/* SPDX-License-Identifier: Apache-2.0 */
/* See stripped-file.h. The layout is made once, from headers alone: the cost is that of the section
 * table. Offsets keep their alignment, up to a page. */
#include "debuginfo-upload/stripped-file.h"

#include "base/check.h"
#include "base/file.h"
#include "base/search.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#define ALIGN_MAX UINT64_C(4096)

static uint64_t align(uint64_t offset, uint64_t to)
{
	if (to == 0 || to > ALIGN_MAX || (to & (to - 1)))
		to = 8;
	return (offset + to - 1) & ~(to - 1);
}

static bool add_piece(struct elf_image *i, uint64_t length, uint64_t from, bool in_file)
{
	struct elf_piece piece = {i->size, length, from, in_file};

	if (!length)
		return true;
	i->size += length;
	return vec_push(&i->pieces, piece);
}

static bool is_kept_name(struct str name, bool has_symtab)
{
	static const char *const always[] = {".gopclntab", ".data.rel.ro.gopclntab", ".gosymtab",
					     ".data.rel.ro.gosymtab", ".go.buildinfo"};
	static const char *const exported[] = {".dynsym", ".dynstr", ".rela.plt"};

	for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		if (str_is(name, always[i]))
			return true;
	for (size_t i = 0; !has_symtab && i < sizeof(exported) / sizeof(exported[0]); i++)
		if (str_is(name, exported[i]))
			return true;
	return false;
}

/* Whether a section's bytes are sent. */
static bool is_kept(const struct elf_file *f, const Elf64_Shdr *s, bool has_symtab)
{
	if (s->sh_type == SHT_NULL || s->sh_type == SHT_NOBITS)
		return false;
	if (!(s->sh_flags & SHF_ALLOC) || s->sh_type == SHT_NOTE)
		return true;
	return is_kept_name(elf_file_section_name(f, s), has_symtab);
}

/* Whether there is one with bytes. */
static bool has(const struct elf_file *f, const char *name)
{
	const Elf64_Shdr *s = elf_file_section(f, name);

	return s && s->sh_type != SHT_NOBITS && s->sh_size > 0;
}

static uint32_t what_it_holds(const struct elf_file *f)
{
	uint32_t holds = 0;

	if (has(f, ".debug_info"))
		holds |= IMAGE_DWARF;
	if (has(f, ".symtab"))
		holds |= IMAGE_SYMTAB;
	if (has(f, ".gopclntab") || has(f, ".data.rel.ro.gopclntab"))
		holds |= IMAGE_GO;
	if (!holds && has(f, ".dynsym"))
		holds = IMAGE_DYNSYM;
	return holds;
}

/* Lays the sections behind each other and notes in `out` where each is. -EOVERFLOW: they are more
 * than the file. */
static int lay_sections(struct elf_image *i, const struct elf_file *f, Elf64_Shdr *out)
{
	bool has_symtab = i->holds & IMAGE_SYMTAB;

	for (size_t k = 0; k < f->n_sections; k++) {
		Elf64_Shdr *s = &out[k];

		*s = f->sections[k];
		if (s->sh_type == SHT_NULL)
			continue;
		if (!is_kept(f, s, has_symtab)) {
			s->sh_type = SHT_NOBITS;
			s->sh_offset = i->size;
			continue;
		}
		if (!elf_file_holds(f, s->sh_offset, s->sh_size))
			return -EOVERFLOW;
		i->size = align(i->size, s->sh_addralign);
		s->sh_offset = i->size;
		if (!add_piece(i, s->sh_size, f->sections[k].sh_offset, true))
			return -ENOMEM;
		if (i->size > f->size)
			return -EOVERFLOW;
	}
	return 0;
}

/* A segment without bytes; of notes, where these lie now. */
static void move_segment(const struct elf_file *f, const Elf64_Shdr *moved, Elf64_Phdr *p)
{
	bool found = false;

	for (size_t k = 0; p->p_type == PT_NOTE && k < f->n_sections; k++) {
		if (found || f->sections[k].sh_type != SHT_NOTE ||
		    f->sections[k].sh_offset != p->p_offset)
			continue;
		/* Several sections can lie in it; they follow each other, the first holds what most
		 * readers look for. */
		p->p_offset = moved[k].sh_offset;
		p->p_filesz = f->sections[k].sh_size;
		found = true;
	}
	if (!found)
		p->p_filesz = 0;
	/* Readers take these for broken where their bytes are not in a segment. */
	if (p->p_type == PT_PHDR || p->p_type == PT_INTERP)
		p->p_type = PT_NULL;
}

static int lay_out(struct elf_image *i, struct elf_file *f)
{
	size_t phdrs = f->n_segments * sizeof(Elf64_Phdr),
	       shdrs = f->n_sections * sizeof(Elf64_Shdr);
	size_t front = sizeof(Elf64_Ehdr) + phdrs;
	char *p = buf_reserve(&i->made, front + shdrs + 8);
	Elf64_Shdr *moved = malloc(shdrs);
	Elf64_Ehdr head;
	int r = p && moved ? file_pread(f->fd, &head, sizeof(head), 0) : -ENOMEM;

	if (r == 0 && !add_piece(i, front, 0, false))
		r = -ENOMEM;
	if (r == 0)
		r = lay_sections(i, f, moved);
	if (r == 0) {
		i->size = align(i->size, 8);
		head.e_phoff = f->n_segments ? sizeof(head) : 0;
		head.e_shoff = i->size;
		memcpy(p, &head, sizeof(head));
		for (size_t k = 0; k < f->n_segments; k++) {
			Elf64_Phdr segment = f->segments[k];

			move_segment(f, moved, &segment);
			memcpy(p + sizeof(head) + k * sizeof(segment), &segment, sizeof(segment));
		}
		memcpy(p + front, moved, shdrs);
		i->made.n = front + shdrs;
		r = add_piece(i, shdrs, front, false) ? 0 : -ENOMEM;
	}
	free(moved);
	return r == 0 && i->size > f->size ? -EOVERFLOW : r;
}

static int take_whole(struct elf_image *i, const struct elf_file *f)
{
	i->pieces.n = 0;
	i->size = 0;
	return add_piece(i, f->size, 0, true) ? 0 : -ENOMEM;
}

int elf_image_make(struct elf_image *image, struct elf_file *f, bool whole, struct error *err)
{
	struct elf_image i = {.fd = f->fd};
	int r = elf_file_load_sections(f, err);

	if (r < 0)
		return r;
	i.holds = what_it_holds(f);
	if (!i.holds)
		return error_set(err, -ENODATA,
				 "the file holds neither debug information nor symbols");
	r = whole ? -EOVERFLOW : lay_out(&i, f);
	if (r == -EOVERFLOW)
		r = take_whole(&i, f);
	if (r < 0) {
		elf_image_free(&i);
		return error_errno(err, r, "the file cannot be laid out");
	}
	*image = i;
	return 0;
}

void elf_image_free(struct elf_image *image)
{
	buf_free(&image->made);
	vec_free(&image->pieces);
	*image = ELF_IMAGE_NULL;
}

/* Position of the first piece that ends behind `offset`. */
static size_t piece_at(const struct elf_image *i, uint64_t offset)
{
	const struct elf_piece *p = i->pieces.p;

	return search_partition(i->pieces.n, k, p[k].offset + p[k].length <= offset);
}

/* The part of [offset, +n) that lies in one piece, or before the next. */
static int read_some(const struct elf_image *i, size_t at, uint64_t offset, char *out, size_t n)
{
	const struct elf_piece *p = at < i->pieces.n ? &i->pieces.p[at] : NULL;

	if (!p || offset < p->offset) {
		memset(out, 0, n);
		return 0;
	}
	if (p->in_file)
		return file_pread(i->fd, out, n, p->from + (offset - p->offset));
	check(p->from + (offset - p->offset) + n <= i->made.n);
	memcpy(out, i->made.p + p->from + (offset - p->offset), n);
	return 0;
}

int elf_image_read(const struct elf_image *image, uint64_t offset, char *out, size_t n)
{
	size_t at = piece_at(image, offset);

	check(offset <= image->size && n <= image->size - offset);
	while (n) {
		const struct elf_piece *p = at < image->pieces.n ? &image->pieces.p[at] : NULL;
		uint64_t end = !p                   ? offset + n
			       : offset < p->offset ? p->offset
						    : p->offset + p->length;
		size_t part = end - offset < n ? (size_t)(end - offset) : n;
		int r = read_some(image, at, offset, out, part);

		if (r < 0)
			return r;
		at += p && offset + part == p->offset + p->length;
		offset += part;
		out += part;
		n -= part;
	}
	return 0;
}

void elf_image_ahead(const struct elf_image *image, uint64_t offset, uint64_t n)
{
	for (size_t at = piece_at(image, offset); at < image->pieces.n; at++) {
		const struct elf_piece *p = &image->pieces.p[at];
		uint64_t skip = offset > p->offset ? offset - p->offset : 0;

		if (p->offset >= offset + n)
			return;
		if (p->in_file)
			posix_fadvise(image->fd, (off_t)(p->from + skip),
				      (off_t)(p->length - skip < n ? p->length - skip : n),
				      POSIX_FADV_WILLNEED);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Header, note, sections, their names, their table. Contract in assemble.h. */
#include "debuginfod/assemble.h"

#include "base/buf.h"
#include "base/check.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

#define PIECE ((size_t)65536)

struct writer {
	int to;
	uint64_t at;
	struct buf names;
	Elf64_Shdr table[ASSEMBLE_MAX + 3]; /* the empty one, the note, and the names */
	unsigned int n;
};

static int write_padded(struct writer *w, const void *p, size_t n)
{
	static const char zeros[8];
	int r = file_write_fd(w->to, p, n);

	w->at += n;
	if (r == 0 && w->at % 8) {
		r = file_write_fd(w->to, zeros, 8 - w->at % 8);
		w->at += 8 - w->at % 8;
	}
	return r;
}

static int copy(struct writer *w, int fd, uint64_t size)
{
	_cleanup_(freep) char *piece = malloc(PIECE);
	int r = piece ? 0 : -ENOMEM;

	for (uint64_t at = 0; r == 0 && at < size;) {
		size_t n = size - at < PIECE ? (size_t)(size - at) : PIECE;

		r = file_pread(fd, piece, n, at);
		if (r == 0)
			r = at + n < size ? file_write_fd(w->to, piece, n)
					  : write_padded(w, piece, n);
		if (at + n < size)
			w->at += n;
		at += n;
	}
	return r;
}

/* An empty section is one that is not there. */
static Elf64_Shdr *add(struct writer *w, const char *name, uint32_t type, uint64_t size)
{
	Elf64_Shdr *s = &w->table[w->n];

	check(w->n++ < sizeof(w->table) / sizeof(w->table[0]));
	*s = (Elf64_Shdr){.sh_name = (uint32_t)w->names.n,
			  .sh_type = type,
			  .sh_offset = w->at,
			  .sh_size = size,
			  .sh_addralign = 1};
	buf_append(&w->names, name, strlen(name) + 1);
	return s;
}

static int add_note(struct writer *w, struct str id)
{
	struct {
		Elf64_Nhdr head;
		char owner[4];
		unsigned char id[64];
	} note = {{4, (uint32_t)(id.n / 2), NT_GNU_BUILD_ID}, "GNU", {0}};

	if (id.n % 2 || id.n / 2 > sizeof(note.id))
		return -EINVAL;
	for (size_t i = 0; i < id.n / 2; i++) {
		uint64_t byte;

		if (!str_hex((struct str){id.p + 2 * i, 2}, &byte))
			return -EINVAL;
		note.id[i] = (unsigned char)byte;
	}
	add(w, ".note.gnu.build-id", SHT_NOTE, 16 + (id.n / 2 + 3) / 4 * 4)->sh_addralign = 4;
	return write_padded(w, &note, 16 + (id.n / 2 + 3) / 4 * 4);
}

static bool is_compressed(int fd, uint64_t size)
{
	struct {
		Elf64_Chdr head;
		unsigned char first;
	} start;

	return size > sizeof(start) && file_pread(fd, &start, sizeof(start), 0) == 0 &&
	       start.head.ch_reserved == 0 && start.head.ch_size && start.head.ch_addralign <= 16 &&
	       ((start.head.ch_type == ELFCOMPRESS_ZLIB && (start.first & 0x0f) == 8) ||
		(start.head.ch_type == ELFCOMPRESS_ZSTD && start.first == 0x28));
}

static int add_section(struct writer *w, const struct assemble_section *section)
{
	bool symbols = !strcmp(section->name, ".symtab"), texts = !strcmp(section->name, ".strtab");
	struct stat st;
	Elf64_Shdr *s;

	if (section->fd < 0)
		return 0;
	if (fstat(section->fd, &st) < 0)
		return -errno;
	s = add(w, section->name,
		symbols ? SHT_SYMTAB
		: texts ? SHT_STRTAB
			: SHT_PROGBITS,
		(uint64_t)st.st_size);
	s->sh_entsize = symbols ? sizeof(Elf64_Sym) : 0;
	s->sh_addralign = symbols ? 8 : 1;
	s->sh_flags = is_compressed(section->fd, (uint64_t)st.st_size) ? SHF_COMPRESSED : 0;
	return copy(w, section->fd, (uint64_t)st.st_size);
}

static void link_symbols(struct writer *w)
{
	for (unsigned int i = 1; i < w->n; i++)
		for (unsigned int k = 1; w->table[i].sh_type == SHT_SYMTAB && k < w->n; k++)
			if (w->table[k].sh_type == SHT_STRTAB)
				w->table[i].sh_link = k;
}

static int finish(struct writer *w)
{
	Elf64_Ehdr head = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT},
			   .e_type = ET_DYN,
			   .e_version = EV_CURRENT,
			   .e_ehsize = sizeof(head),
			   .e_shentsize = sizeof(Elf64_Shdr)};
	int r;

	link_symbols(w);
	head.e_shstrndx = (uint16_t)w->n;
	add(w, ".shstrtab", SHT_STRTAB, 0)->sh_size = w->names.n;
	w->table[head.e_shstrndx].sh_size = w->names.n;
	if (w->names.failed)
		return -ENOMEM;
	r = write_padded(w, w->names.p, w->names.n);
	head.e_shoff = w->at;
	head.e_shnum = (uint16_t)w->n;
	if (r == 0)
		r = file_write_fd(w->to, w->table, w->n * sizeof(w->table[0]));
	if (r == 0 && pwrite(w->to, &head, sizeof(head), 0) != sizeof(head))
		r = -EIO;
	return r;
}

int assemble(int to, struct str build_id, const struct assemble_section *sections, size_t n)
{
	static const Elf64_Ehdr later;
	struct writer w = {.to = to, .n = 1};
	int r = buf_putc(&w.names, '\0');

	check(n <= ASSEMBLE_MAX);
	if (r == 0)
		r = write_padded(&w, &later, sizeof(later));
	if (r == 0)
		r = add_note(&w, build_id);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = add_section(&w, &sections[i]);
	if (r == 0)
		r = finish(&w);
	buf_free(&w.names);
	return r;
}

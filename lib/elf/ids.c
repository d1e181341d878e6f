/* SPDX-License-Identifier: Apache-2.0 */
/* Build ids and file id. Notes are looked for in PT_NOTE first: what a loader maps cannot be
 * stripped, and most files then never need their section headers read. */
#include "elf/ids.h"

#include "base/check.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/sha256.h"

#include <errno.h>
#include <stdlib.h>

#define HASHED    UINT64_C(4096)
#define MAX_NOTES ((size_t)65536)
#define NT_GO_ID  4

void elf_hex(const void *bytes, size_t n, char *ret)
{
	const unsigned char *p = bytes;
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		ret[2 * i] = digits[p[i] >> 4];
		ret[2 * i + 1] = digits[p[i] & 15];
	}
	ret[2 * n] = '\0';
}

int elf_file_id(int fd, uint64_t size, char ret[33])
{
	uint64_t part = size < HASHED ? size : HASHED;
	_cleanup_(freep) unsigned char *p = malloc(HASHED);
	unsigned char digest[SHA256_BYTES], length[8];
	struct sha256 s;
	int r;

	if (!p)
		return -ENOMEM;
	sha256_init(&s);
	r = file_pread(fd, p, part, 0);
	if (r < 0)
		return r;
	sha256_add(&s, p, part);
	r = file_pread(fd, p, part, size - part);
	if (r < 0)
		return r;
	sha256_add(&s, p, part);
	for (size_t i = 0; i < 8; i++)
		length[i] = (unsigned char)(size >> (56 - 8 * i));
	sha256_add(&s, length, sizeof(length));
	sha256_finish(&s, digest);
	elf_hex(digest, 16, ret);
	return 0;
}

static void take_gnu(struct str id, struct elf_ids *ids)
{
	if (id.n && id.n <= ELF_BUILD_ID_CHARS / 2 && !ids->gnu_build_id[0])
		elf_hex(id.p, id.n, ids->gnu_build_id);
}

/* It goes into labels and onto terminals: printable ASCII, or nothing. */
static void take_go(struct str id, struct elf_ids *ids)
{
	if (id.n == 0 || id.n > ELF_BUILD_ID_CHARS || ids->go_build_id[0])
		return;
	for (size_t i = 0; i < id.n; i++)
		if (id.p[i] <= ' ' || id.p[i] > '~')
			return;
	memcpy(ids->go_build_id, id.p, id.n);
	ids->go_build_id[id.n] = '\0';
}

static void take_note(uint32_t type, struct str owner, struct str content, struct elf_ids *ids)
{
	if (type == NT_GNU_BUILD_ID && str_eq(owner, (struct str){"GNU", 4}))
		take_gnu(content, ids);
	else if (type == NT_GO_ID && str_eq(owner, (struct str){"Go\0", 4}))
		take_go(content, ids);
}

/* Cuts n bytes and their padding off the front; false if there are fewer. */
static bool cut(struct str *rest, size_t n, size_t align, struct str *ret)
{
	if (n > rest->n)
		return false;
	*ret = (struct str){rest->p, n};
	*rest = str_skip(*rest, (n + align - 1) & ~(align - 1));
	return true;
}

static void walk_notes(struct str rest, size_t align, struct elf_ids *ids)
{
	struct str head, owner, content;
	Elf64_Nhdr note;

	check(align == 4 || align == 8);
	while (cut(&rest, sizeof(note), 4, &head)) {
		memcpy(&note, head.p, sizeof(note));
		/* With 8-byte alignment the padding counts from the note's start, and so does the
		 * end of its owner. */
		if (!cut(&rest, note.n_namesz, align == 8 ? 1 : 4, &owner))
			return;
		if (align == 8)
			rest = str_skip(rest, -(sizeof(note) + owner.n) & 7);
		if (!cut(&rest, note.n_descsz, align, &content))
			return;
		take_note(note.n_type, owner, content, ids);
	}
}

static bool complete(const struct elf_ids *ids)
{
	return ids->gnu_build_id[0] && ids->go_build_id[0];
}

/* The notes of one range of the file; what cannot be read is passed over. */
static void read_notes(const struct elf_file *f, uint64_t offset, uint64_t size, uint64_t align,
		       struct elf_ids *ids)
{
	size_t n = size < MAX_NOTES ? (size_t)size : MAX_NOTES;
	_cleanup_(freep) char *p = NULL;

	if (n == 0 || !elf_file_holds(f, offset, n))
		return;
	p = malloc(n);
	if (p && file_pread(f->fd, p, n, offset) == 0)
		walk_notes((struct str){p, n}, align == 8 ? 8 : 4, ids);
}

static void notes_of_segments(const struct elf_file *f, struct elf_ids *ids)
{
	for (size_t i = 0; i < f->n_segments && !complete(ids); i++)
		if (f->segments[i].p_type == PT_NOTE)
			read_notes(f, f->segments[i].p_offset, f->segments[i].p_filesz,
				   f->segments[i].p_align, ids);
}

static void notes_of_sections(const struct elf_file *f, struct elf_ids *ids)
{
	for (size_t i = 0; i < f->n_sections && !complete(ids); i++)
		if (f->sections[i].sh_type == SHT_NOTE)
			read_notes(f, f->sections[i].sh_offset, f->sections[i].sh_size,
				   f->sections[i].sh_addralign, ids);
}

int elf_ids_read(struct elf_file *f, struct elf_ids *ret)
{
	struct elf_ids ids = {.gnu_build_id = ""};
	int r = elf_file_id(f->fd, f->size, ids.file_id);

	if (r < 0)
		return r;
	notes_of_segments(f, &ids);
	/* One id of either kind names the file; the sections cost two reads. */
	if (!ids.gnu_build_id[0] && !ids.go_build_id[0] && elf_file_load_sections(f, NULL) == 0)
		notes_of_sections(f, &ids);
	*ret = ids;
	return 0;
}

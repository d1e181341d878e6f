/* SPDX-License-Identifier: Apache-2.0 */
/* See plugin-file.h. */
#include "host/registry/plugin-file.h"

#include "base/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int plugin_file_cut_off(const struct plugin_file *file, const char *what, struct error *err)
{
	return error_set(
		err, -ENOEXEC,
		"it is truncated: %s lies beyond its end at %llu bytes; copy or build it again",
		what, (unsigned long long)file->size);
}

int plugin_file_half_written(const char *what, struct error *err)
{
	return error_set(err, -ENOEXEC, "it is damaged or half-written: %s; copy or build it again",
			 what);
}

int plugin_file_read(const struct plugin_file *file, void *data, size_t n, uint64_t offset,
		     const char *what, struct error *err)
{
	int r;

	if (!plugin_file_within(offset, n, file->size))
		return plugin_file_cut_off(file, what, err);
	r = file_pread(file->fd, data, n, offset);
	if (r == -ENODATA)
		return plugin_file_cut_off(file, what, err);
	return r < 0 ? error_errno(err, r, "cannot be read") : 0;
}

bool plugin_file_offset(const struct plugin_file *file, uint64_t address, uint64_t n,
			uint64_t *ret_offset)
{
	for (uint16_t i = 0; i < file->header.e_phnum; i++) {
		const Elf64_Phdr *p = &file->segments[i];

		if (p->p_type != PT_LOAD || address < p->p_vaddr ||
		    !plugin_file_within(address - p->p_vaddr, n, p->p_filesz))
			continue;
		*ret_offset = p->p_offset + (address - p->p_vaddr);
		return true;
	}
	return false;
}

static int read_entries(const struct plugin_file *file, const Elf64_Phdr *dynamic,
			Elf64_Dyn ret[PLUGIN_FILE_DYNAMIC], struct error *err)
{
	uint64_t n = dynamic->p_filesz / sizeof(*ret);

	for (uint64_t i = 0; i < n && i < PLUGIN_FILE_DYNAMIC; i++) {
		int r = plugin_file_read(file, &ret[i], sizeof(*ret),
					 dynamic->p_offset + i * sizeof(*ret),
					 "its dynamic section", err);

		if (r < 0)
			return r;
		if (ret[i].d_tag == DT_NULL)
			return (int)i;
	}
	return plugin_file_half_written("its dynamic section is not whole", err);
}

int plugin_file_dynamic(const struct plugin_file *file, Elf64_Dyn ret[PLUGIN_FILE_DYNAMIC],
			struct error *err)
{
	uint64_t offset;

	for (uint16_t i = 0; i < file->header.e_phnum; i++) {
		const Elf64_Phdr *p = &file->segments[i];

		if (p->p_type != PT_DYNAMIC)
			continue;
		if (!plugin_file_offset(file, p->p_vaddr, p->p_filesz, &offset))
			return plugin_file_half_written("its dynamic section lies outside of it",
							err);
		return read_entries(file, p, ret, err);
	}
	return plugin_file_half_written("it has no dynamic section", err);
}

#define NOTES_BYTES 1024u

struct note {
	Elf64_Nhdr head;
	char name[4];
	unsigned char id[(PLUGIN_FILE_BUILD_ID - 1) / 2];
};

/* Notes are a head, a name and a description, each of the latter filled up to 4 bytes. */
static bool find_build_id(const unsigned char *notes, size_t n, struct note *ret)
{
	for (size_t at = 0; n - at >= sizeof(ret->head) + sizeof(ret->name);) {
		size_t left = n - at - sizeof(ret->head) - sizeof(ret->name), skip;

		memcpy(&ret->head, notes + at, sizeof(ret->head));
		memcpy(ret->name, notes + at + sizeof(ret->head), sizeof(ret->name));
		if (ret->head.n_type == NT_GNU_BUILD_ID && memcmp(ret->name, "GNU", 4) == 0 &&
		    ret->head.n_namesz == sizeof(ret->name) && ret->head.n_descsz <= left &&
		    ret->head.n_descsz <= sizeof(ret->id)) {
			memcpy(ret->id, notes + at + sizeof(ret->head) + sizeof(ret->name),
			       ret->head.n_descsz);
			return true;
		}
		skip = sizeof(ret->head) + ((ret->head.n_namesz + 3ull) & ~3ull) +
		       ((ret->head.n_descsz + 3ull) & ~3ull);
		if (skip > n - at)
			return false;
		at += skip;
	}
	return false;
}

void plugin_file_build_id(const struct plugin_file *file, char ret[PLUGIN_FILE_BUILD_ID])
{
	unsigned char notes[NOTES_BYTES];
	struct note note;

	memset(ret, 0, PLUGIN_FILE_BUILD_ID);
	for (uint16_t i = 0; i < file->header.e_phnum; i++) {
		const Elf64_Phdr *p = &file->segments[i];
		size_t n = p->p_filesz < sizeof(notes) ? p->p_filesz : sizeof(notes);

		if (p->p_type != PT_NOTE ||
		    plugin_file_read(file, notes, n, p->p_offset, "", NULL) ||
		    !find_build_id(notes, n, &note))
			continue;
		for (uint32_t k = 0; k < note.head.n_descsz; k++)
			snprintf(ret + 2 * k, 3, "%02x", note.id[k]);
		return;
	}
}

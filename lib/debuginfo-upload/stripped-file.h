/* SPDX-License-Identifier: Apache-2.0 */
/* An image of an ELF file for a server that symbolizes. It is read piece by piece from the open
 * file; neither memory nor a temporary file holds it.
 *
 * An image of debug information is the file without the program's own bytes, as objcopy
 * --only-keep-debug and eu-strip -f make it. A loaded section keeps its header, address and size
 * and becomes SHT_NOBITS, unless it has names or ids (notes; Go's tables; the dynamic symbols with
 * .rela.plt if there is no .symtab). Segments keep their addresses, and have no bytes but notes. */
#pragma once

#include "base/vec.h"
#include "elf/file.h"

/* What an image can give names by. */
#define IMAGE_DWARF  1u /* .debug_info: functions, lines, inlined calls */
#define IMAGE_SYMTAB 2u /* .symtab */
#define IMAGE_GO     4u /* Go's .gopclntab */
#define IMAGE_DYNSYM 8u /* .dynsym alone: what is exported */

/* [offset, +length) of the image: bytes in `made` or in the file. What no piece holds is 0. */
struct elf_piece {
	uint64_t offset;
	uint64_t length;
	uint64_t from;
	bool in_file;
};

struct elf_image {
	int fd;        /* borrowed: must outlive the image's use */
	uint64_t size; /* bytes in all */
	uint32_t holds;
	struct buf made;              /* headers that were made anew */
	VEC(struct elf_piece) pieces; /* by offset */
};

#define ELF_IMAGE_NULL ((struct elf_image){.fd = -1})

/* Makes the image of the file's debug information, or with `whole` the file as it is. The sections
 * get loaded. What would become larger than the file (its sections overlap) is sent whole. 0;
 * -ENODATA: the file holds no names at all; else as elf_file_load_sections. About 100 bytes of
 * memory a section. To be freed after success. */
int elf_image_make(struct elf_image *image, struct elf_file *f, bool whole, struct error *err);
void elf_image_free(struct elf_image *image);

/* The bytes [offset, +n) of the image, which must lie within it: 0, -ENODATA where the file has
 * become shorter, or an errno. O(log pieces) and a pread a piece. */
int elf_image_read(const struct elf_image *image, uint64_t offset, char *out, size_t n);

/* Asks the kernel to read [offset, +n) ahead, so that elf_image_read need not wait for the disk. A
 * hint: what lies behind the end does not matter. */
void elf_image_ahead(const struct elf_image *image, uint64_t offset, uint64_t n);

/* SPDX-License-Identifier: Apache-2.0 */
/* Decompressing a range of a file in pieces: sections as ELF compresses them (SHF_COMPRESSED, by
 * zlib or zstd), as GNU tools did before (".zdebug_…": "ZLIB" and a big-endian size), and xz.
 *
 * The size that a file claims is never trusted: memory is 128 KiB and the decoder's own (zlib 48
 * KiB, zstd 8 MiB at most, xz MINIDEBUG_MEMORY), and decoding stops where the claim ends. */
#pragma once

#include "elf/file.h"

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

enum elf_codec { ELF_CODEC_ZLIB, ELF_CODEC_ZSTD, ELF_CODEC_XZ };

struct elf_compressed {
	enum elf_codec codec;
	uint64_t offset, end; /* in the file */
	uint64_t max;         /* bytes that it may become */
	bool exact;           /* it must become `max`: the file claims so */
};

/* Whether a section's bytes are compressed. Not whether they can be decompressed. */
bool elf_section_is_compressed(const struct elf_file *f, const Elf64_Shdr *s);

/* How a compressed section is to be read. -E2BIG: it claims more than `max`; -ENOTSUP: another
 * compression; -ENOEXEC: broken; or an errno. One pread. */
int elf_compressed_read(const struct elf_file *f, const Elf64_Shdr *s, uint64_t max,
			struct elf_compressed *ret);

/* Takes the next n bytes; a negative errno ends decompression with that. */
typedef int (*elf_inflate_fn)(void *context, const void *bytes, size_t n);

/* Decompresses, and hands out pieces of 64 KiB at most. 0; -ENOEXEC: broken, or not as many bytes
 * as claimed; -E2BIG: more than c->max, or the decoder wants more memory than it gets; -ENOMEM;
 * what `put` said, or an errno. / */
int elf_inflate(const struct elf_file *f, const struct elf_compressed *c, elf_inflate_fn put,
		void *context);

/* The same into a new memfd, at most c->max bytes; *ret_n is their number. The caller closes
 * *ret_fd. */
int elf_inflate_memfd(const struct elf_file *f, const struct elf_compressed *c, int *ret_fd,
		      uint64_t *ret_n);

#define MINIDEBUG_MAX    (UINT64_C(64) << 20) /* bytes of the file within */
#define MINIDEBUG_MEMORY (UINT64_C(32) << 20) /* that the decoder may ask for */

/* Inflates .gnu_debugdata into a memfd, which the caller closes: the function symbols that Fedora
 * keeps in stripped programs, as an ELF file compressed with xz. Loads the sections. -ENOENT: there
 * is none; -E2BIG: larger than the limits above; -ENOEXEC: broken; -ENOMEM or an errno. */
int elf_minidebug_open(struct elf_file *f, int *ret_fd);

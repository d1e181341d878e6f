/* SPDX-License-Identifier: Apache-2.0 */
/* Inflating a compressed section into a file, in pieces. */
#ifndef ELF_INFLATE_H
#define ELF_INFLATE_H

#include "elf/file.h"

/*
 * Writes the bytes of a compressed section (zlib) to `to`, and their number to
 * *ret. -E2BIG: they claim or turn out to be more than `max`; -ENOTSUP: another compression;
 * -ENOEXEC: broken, or not as many as claimed; -ENOMEM or an errno. 128 KiB of memory.
 */
int elf_inflate_section(const struct elf_file *f, const Elf64_Shdr *s, uint64_t max, int to,
			uint64_t *ret);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* By what a file is known elsewhere: the GNU build id (hex), Go's build id (as written) and the
 * OpenTelemetry file id. All as text, "" where the file has none.
 *
 * Sources: NT_GNU_BUILD_ID of <elf.h>; cmd/internal/buildid of Go (note owner
 * "Go", type 4); the OpenTelemetry eBPF profiler's FileID: the first 16 bytes
 * of SHA-256 over the first 4 KiB, the last 4 KiB (they overlap in a short
 * file) and the length as 8 bytes big-endian. */
#pragma once

#include "elf/file.h"

#define ELF_BUILD_ID_CHARS 160

struct elf_ids {
	char gnu_build_id[ELF_BUILD_ID_CHARS + 1];
	char go_build_id[ELF_BUILD_ID_CHARS + 1];
	char file_id[33];
};

/* Reads all three, the notes from the segments and, if an id is not there, from the note sections
 * (which loads the sections). Broken notes are passed over. 0, or the errno of a read of the file
 * id; *ret is written on success. About five preads. */
int elf_ids_read(struct elf_file *f, struct elf_ids *ret);

/* The file id alone, of any regular file. */
int elf_file_id(int fd, uint64_t size, char ret[33]);

/* Writes n bytes as 2n hexadecimal digits and a NUL. */
void elf_hex(const void *bytes, size_t n, char *ret);

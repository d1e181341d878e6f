/* SPDX-License-Identifier: Apache-2.0 */
/* What a stripped file says of where its debug information went: .gnu_debuglink (a file name and
 * the CRC of the file, gdb's manual, "Separate Debug Files") and .gnu_debugaltlink (the build id of
 * the file that dwz has put common entries into). */
#pragma once

#include "elf/ids.h"

#define DEBUGLINK_NAME_MAX 255

struct elf_debuglinks {
	char name[DEBUGLINK_NAME_MAX + 1]; /* without a folder; "": there is none */
	uint32_t crc;
	char alt_build_id[ELF_BUILD_ID_CHARS + 1]; /* hex; "": there is none */
};

/* Reads both; broken ones count as none. Loads the sections. 0, -ENOMEM or an errno. */
int elf_debuglinks_read(struct elf_file *f, struct elf_debuglinks *ret);

/* The CRC of a whole file, as in .gnu_debuglink. O(size), in pieces. -E2BIG: more than
 * `max` bytes; -ENOMEM or an errno. */
int elf_debuglink_crc(int fd, uint64_t max, uint32_t *ret);

/* Whether the file `debug` is the debug file of `own`, whose links these are: by their build ids,
 * or where one has none, by the link's CRC, of at most `max` bytes. 1, 0, -ENOMEM. Loads the
 * sections of `own`. */
int elf_debuglink_belongs(struct elf_file *own, const struct elf_debuglinks *links, int debug,
			  uint64_t max);

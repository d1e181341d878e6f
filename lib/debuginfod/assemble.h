/* SPDX-License-Identifier: Apache-2.0 */
/* Makes an ELF file of sections that were fetched one by one, for readers of debug files. */
#pragma once

#include "base/str.h"

#define ASSEMBLE_MAX 8u

struct assemble_section {
	const char *name;
	int fd; /* borrowed; its bytes as a server sends them; -1: there is none */
};

/* Writes the file to `to`, which is empty, with a note of the build id (hex). A server does not say
 * whether a section is compressed; its bytes do: they begin with an Elf64_Chdr of zlib, which no
 * table of lines, symbols or texts does. .symtab is linked to .strtab where both are there. 0,
 * -EINVAL or an errno. O(bytes). */
int assemble(int to, struct str build_id, const struct assemble_section *sections, size_t n);

/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin file as the dynamic loader sees it, read with bounds: a few tables, never a mapping. */
#pragma once

#include "base/error.h"

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLUGIN_FILE_SEGMENTS 64u
#define PLUGIN_FILE_DYNAMIC  1024u
#define PLUGIN_FILE_BUILD_ID 41u /* 20 bytes in hex, and a NUL */

struct plugin_file {
	int fd; /* borrowed */
	uint64_t size;
	Elf64_Ehdr header;
	Elf64_Phdr segments[PLUGIN_FILE_SEGMENTS];
};

/* The two ways in which a file is not whole: -ENOEXEC, with a sentence. */
int plugin_file_cut_off(const struct plugin_file *file, const char *what, struct error *err);
int plugin_file_half_written(const char *what, struct error *err);

static inline bool plugin_file_within(uint64_t offset, uint64_t length, uint64_t size)
{
	return offset <= size && length <= size - offset;
}

/* The n bytes of the file at `offset`: 0, or a negative errno and a sentence about `what`; a file
 * that shrank meanwhile is cut off. */
int plugin_file_read(const struct plugin_file *file, void *data, size_t n, uint64_t offset,
		     const char *what, struct error *err);

/* Where the n bytes at a virtual address stand in the file; false if they do not all come from it.
 */
bool plugin_file_offset(const struct plugin_file *file, uint64_t address, uint64_t n,
			uint64_t *ret_offset);

/* The dynamic section, without its end: the number of entries, or a negative errno and a sentence.
 */
int plugin_file_dynamic(const struct plugin_file *file, Elf64_Dyn ret[PLUGIN_FILE_DYNAMIC],
			struct error *err);

/* What the linker has noted of its content, in hex; "" if there is none. Bounded. */
void plugin_file_build_id(const struct plugin_file *file, char ret[PLUGIN_FILE_BUILD_ID]);

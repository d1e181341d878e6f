/* SPDX-License-Identifier: Apache-2.0 */
/* Where in a file what a program has at an address lies. */
#pragma once

#include "elf/file.h"

/* The range of the file behind the rest of a loaded segment. */
struct elf_range {
	uint64_t offset;
	uint64_t size;
};

/* From `address` to the end of the loaded segment that has it in the file, inside the file.
 * -ENOENT: none has. O(segments). */
int elf_segment_range(const struct elf_file *f, uint64_t address, struct elf_range *ret);

/* The bytes of segment i that lie inside the file. */
struct elf_range elf_segment_bytes(const struct elf_file *f, size_t i);

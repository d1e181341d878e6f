/* SPDX-License-Identifier: Apache-2.0 */
/* Where functions begin and end by call-frame information (.eh_frame, else .debug_frame): known
 * also of files without symbols, since nothing could be thrown through them otherwise. What a
 * compiler has split (a hot and a cold part) are two here.
 *
 * 16 bytes a function. */
#pragma once

#include "elf/file.h"

struct elf_function {
	uint64_t start, size;
};

struct elf_functions {
	struct elf_function *list; /* by start */
	size_t n;
};

#define ELF_FUNCTIONS_NULL ((struct elf_functions){0})

/* Reads the first of the two sections that holds any function; neither is no error, nor is one that
 * cannot be read (n stays 0). Loads the sections. -E2BIG: more than `max` functions, or records
 * without end; -ENOMEM or an errno. O(section), n log n where it is not in order. */
int elf_functions_load(struct elf_functions *ret, struct elf_file *f, size_t max);
void elf_functions_free(struct elf_functions *t);

/* Memory that the table takes. */
size_t elf_functions_bytes(const struct elf_functions *t);

/* The function that covers an address, the innermost where they overlap; NULL: none does. O(log n).
 */
const struct elf_function *elf_functions_find(const struct elf_functions *t, uint64_t address);

/* Whether a function begins behind `after`, at `address` at the latest. O(log n). */
bool elf_functions_begins(const struct elf_functions *t, uint64_t after, uint64_t address);

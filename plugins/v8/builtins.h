/* SPDX-License-Identifier: Apache-2.0 */
/* Builtins in order; and those of a V8 whose symbols were stripped, as Debian's libnode: their
 * names are in a table that V8 keeps for itself, their places in the first part of the embedded
 * data.
 *
 * src/builtins/builtins.cc: builtin_metadata, entries of 24 bytes that begin with a name, which a
 * relocation points to. src/snapshot/embedded/embedded-data.h: LayoutDescription, for each builtin
 * its offset and length in the code. Both are in the order of builtins. */
#pragma once

#include <stdint.h>

#include "runtime-kit/elf-file.h"
#include "v8/binary.h"

#define BUILTINS_MAX 8192u

/* Calls `add` with the name and the offset of each; how many, 0: they were not found, or do not
 * fit each other. `data`: address of the embedded data. Reads the table of relocations. */
uint32_t builtins_each(const struct elf_file *f, uint64_t data, uint32_t blob_bytes,
		       void (*add)(void *context, const char *name, uint32_t offset),
		       void *context);

/* Puts those of a binary in order, and finds which are handlers of bytecodes. */
void builtins_sort(struct v8_binary *b);

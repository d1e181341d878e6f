/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the slots of procedure linkage tables: the short code by which a file calls what another
 * may replace, which no symbol names. A slot has the name of what it jumps to, with "@plt" behind
 * it, as in disassemblers and in perf.
 *
 * A slot is known by its jump through the global offset table, and the table's entry by the
 * relocation that fills it in. So no layout of a linker is assumed. Sources: System V ABI for
 * AMD64, "Procedure Linkage Table"; RELA relocations of the ELF specification. */
#pragma once

#include "elf/file.h"

/* The name for `address` of a file whose sections are loaded, replacing what *ret held. -ENOENT: it
 * is in no such slot, or the file is not for x86-64; -ENOMEM or an errno. Reads the relocations,
 * 12 KiB at a time: for the few addresses that nothing else names. */
int elf_linkage_name(const struct elf_file *f, uint64_t address, struct buf *ret);

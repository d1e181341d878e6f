/* SPDX-License-Identifier: Apache-2.0 */
/* The call-frame information of one function of an ELF file, by its .eh_frame_hdr; where there is
 * none, as in a static program, by a search that reads all of it. Everything in it may be
 * forged. */
#pragma once

#include "runtime-kit/elf-file.h"

/* Code of a function with one entry of call-frame information. */
struct elf_code {
	uint64_t from, to;
};

/* Whether the file has an .eh_frame_hdr, by which the other calls take some 20 reads. A search
 * reads all of .eh_frame: 1 ms for 1 MiB. */
bool elf_has_table(const struct elf_file *i);

/* The function that has this address. */
bool elf_function(const struct elf_file *i, uint64_t address, struct elf_code *ret);

/* One stretch of a function in which the canonical frame address is the same. */
struct elf_cfa {
	uint64_t from, to;
	uint32_t reg; /* DWARF's number */
	uint32_t offset;
};

/* The stretches of the function that has this address, in order; at most `max`. 0: none known. */
size_t elf_cfas(const struct elf_file *i, uint64_t address, struct elf_cfa *ret, size_t max);

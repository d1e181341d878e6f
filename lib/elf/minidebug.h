/* SPDX-License-Identifier: Apache-2.0 */
/* .gnu_debugdata: the function symbols that Fedora keeps in stripped programs, as an ELF file
 * compressed with xz. Inflated by liblzma into a memfd. */
#pragma once

#include "elf/file.h"

#define MINIDEBUG_MAX    (UINT64_C(64) << 20) /* bytes of the file within */
#define MINIDEBUG_MEMORY (UINT64_C(32) << 20) /* that the decoder may ask for */

/* Makes a descriptor of the ELF file within, to close. Loads the sections. -ENOENT: there is none;
 * -E2BIG: larger than the limits above; -ENOEXEC: broken; -ENOMEM or an errno. */
int elf_minidebug_open(struct elf_file *f, int *ret_fd);

/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the dynamic loader can be trusted with a file. dlopen maps what the program headers say
 * and reads it without asking how long the file is: one that was cut off kills the process by
 * SIGBUS, one whose tail is still zeros crashes it. So headers and dynamic section are read here
 * first, with bounds. */
#pragma once

#include "host/registry/plugin-file.h"

/* Checks that `fd` is a whole shared object of this machine. 0, and *ret, which borrows fd;
 * -ENOEXEC and a sentence if it is not; another negative errno and text if it cannot be read. Reads
 * a few KiB, changes no file position. On failure *ret is undefined. */
int elf_check(int fd, struct plugin_file *ret, struct error *err);

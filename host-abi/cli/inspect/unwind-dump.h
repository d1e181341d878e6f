/* SPDX-License-Identifier: Apache-2.0 */
/* `andiron inspect --unwind`: by which rules the code of a file is unwound, and what that costs. */
#ifndef CLI_INSPECT_UNWIND_DUMP_H
#define CLI_INSPECT_UNWIND_DUMP_H

#include "elf/file.h"

/*
 * Prints the figures of a file's rows, as JSON or as text with all rows behind. `debug`: its
 * separate debug file, or NULL. 0 or a negative errno, with *err.
 */
int unwind_print(struct elf_file *f, const struct elf_file *debug, const char *path, bool json,
		 struct error *err);

#endif

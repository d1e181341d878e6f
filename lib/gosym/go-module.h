/* SPDX-License-Identifier: Apache-2.0 */
/* Go's runtime.moduledata, where the table of functions does not say all
 * itself: where the text begins, and the base of the functions' data. Part of
 * pclntab.c; sources there. */
#pragma once

#include "elf/file.h"

/* Bytes of writable segments, and of relocations, that are looked through. */
#define GOMODULE_SCAN_MAX (UINT64_C(512) << 20)

struct gomodule {
	uint64_t text, end_text;
	uint64_t functions_data; /* moduledata.gofunc */
};

struct gomodule_sought {
	uint64_t header;                  /* virtual addresses of the table's header */
	uint64_t names;                   /* and of its names: a module points to both */
	unsigned int functions_data_word; /* which word of the module that is */
};

/* 0; -ENOENT: no module points there; -ENOMEM, -ENODATA or pread's errno. The sections are loaded.
 * O(writable segments + relocations) where no section is the module's own. */
int gomodule_find(const struct elf_file *f, const struct gomodule_sought *sought,
		  struct gomodule *ret);

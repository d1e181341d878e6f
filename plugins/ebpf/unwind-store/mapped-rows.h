/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a mapped file, opened by its object. The vDSO is the same in every process, so it is read
 * from our own. */
#pragma once

#include "ebpf/processes/mapped-file.h"

#include "base/error.h"
#include "unwind/rows.h"

/* Opens a mapped file, the vDSO where it is NULL: a descriptor, or a negative errno. */
int mapped_rows_open(const struct andiron_extension *objects, const struct mapped_file *file);

/* An unwind_read_fn (unwind-store.h); the context is the andiron_extension of the objects. */
int mapped_rows_read(void *objects, const struct mapped_file *file,
		     const struct elf_rows_options *options, elf_row_fn fn, void *fn_context,
		     struct error *err);

/* SPDX-License-Identifier: Apache-2.0 */
/* The row of one address, found before the file's rows are read: by the sorted table of
 * .eh_frame_hdr, as exception handlers find it. It is the row that elf_rows_read (rows.h) would
 * give out for the address, with its auxiliary word. Rows of other sources than .eh_frame are not
 * found, nor those of frames that a signal interrupted, nor any in files without such a table.
 *
 * The table is untrusted, and is not compared with the section: a wrong one gives no row, or a row
 * of another function, for its own file. */
#pragma once

#include "unwind/rows.h"

struct elf_row_finder;

/* Opens the call-frame information of a file; takes the descriptor over, on failure too. 0;
 * -ENOENT: there is none that can be found so; -ENOEXEC, -ENOTSUP, -ENOMEM or an errno. Some 100
 * KiB; a few preads. */
int elf_row_finder_open(struct elf_row_finder **ret, int fd);
void elf_row_finder_close(struct elf_row_finder *f);

/* 1: *ret is the row that holds for `address`, itself its address; 0: there is no telling. Some ten
 * preads of a page, and O(instructions of the function). */
int elf_row_finder_find(struct elf_row_finder *f, uint64_t address, struct elf_row *ret);

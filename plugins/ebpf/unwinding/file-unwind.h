/* SPDX-License-Identifier: Apache-2.0 */
/* File unwind: unwinds snapshots by the files' own search tables (unwind/row-finder.h), before
 * unwind tables are built. A compiler's libraries take half a second to read; waiting snapshots
 * would be 100 MB by then. A new frame takes some 10 µs, a known one next to nothing.
 *
 * It fails on code of Go or of no file, and on frames that a signal interrupted: such snapshots
 * wait for tables. Zero-initialised is empty. Memory: some 100 KiB a file, FILE_UNWIND_FILES at
 * most, and 128 KiB of rules, while in use. */
#pragma once

#include "ebpf/processes/maps.h"
#include "ebpf/unwinding/native-unwind.h"

#include "unwind/row-finder.h"

#include <andiron/host.h>

#define FILE_UNWIND_FILES 32u
#define FILE_UNWIND_ROWS  4096u /* a power of two */

struct file_unwind_file {
	uint32_t id;                   /* never given twice; 0: a free slot */
	struct mapped_file *file;      /* with a reference; NULL: the vDSO */
	struct elf_row_finder *finder; /* NULL: it cannot be asked */
};

struct file_unwind_row {
	uint32_t id;        /* the file's; 0: empty */
	struct elf_row row; /* of exactly this address; rule 0: there is none */
};

struct file_unwind {
	struct file_unwind_file files[FILE_UNWIND_FILES];
	struct file_unwind_row *rows; /* FILE_UNWIND_ROWS, or NULL */
	uint32_t n_opened;            /* files, ever: who was opened first makes room */
	uint32_t n_walks;             /* since file_unwind_rest */
};

/* Walks a snapshot's copies in a process that had these mappings when it was taken; those behind
 * them do not count. True where that went to the thread's entry, or as far as the copies go: then
 * no table would help either, and *w is the walk as of walk_snapshot. Else *w means nothing. */
bool file_unwind_walk(struct file_unwind *e, const struct andiron_extension *objects,
		      const struct mapset *maps, const struct sampler_snapshot *snapshot,
		      const struct walk_stack stacks[SAMPLER_COPIES], struct andiron_walk *w);

/* Gives files and memory back, if none was needed since the last time. */
void file_unwind_rest(struct file_unwind *e);
void file_unwind_free(struct file_unwind *e);
